"""GET /aggregate/{ClassName}: pipelines and distinct values, for the master key."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def sales(master):
    shops = {name: master.make("Shop", name=name) for name in ("north", "south")}
    for shop, amount, tags in (
        ("north", 10, ["a", "b"]),
        ("north", 5, ["b"]),
        ("south", 7, []),
        ("south", None, ["c"]),
    ):
        pointer = {"__type": "Pointer", "className": "Shop", "objectId": shops[shop]}
        fields = {} if amount is None else {"amount": amount}
        master.make("Sale", shopName=shop, shop=pointer, tags=tags, place={"x": shop}, **fields)
    return shops


def aggregate(api, *stages, class_name="Sale", **params):
    if stages:
        params["pipeline"] = json.dumps(stages)
    reply = api.get(f"/aggregate/{class_name}", **params)
    assert reply.status == 200, reply.json
    return reply.json["results"]


def test_groups_show_their_key_as_object_id(master, sales):
    group = {"_id": "$shopName", "total": {"$sum": "$amount"}, "number": {"$sum": 1}}
    results = aggregate(master, {"$group": group}, {"$sort": {"_id": 1}})
    assert results == [
        {"objectId": "north", "total": 15, "number": 2},
        {"objectId": "south", "total": 7, "number": 2},
    ]


@pytest.mark.parametrize("key", [None, "", {}, []])
def test_an_empty_key_makes_one_group_whose_id_is_null(master, sales, key):
    assert aggregate(master, {"$group": {"_id": key, "number": {"$sum": 1}}}) == [
        {"objectId": None, "number": 4}
    ]


def test_groups_by_a_pointer_show_the_id_that_it_points_to(master, sales):
    master.make("Sale", amount=1)
    group = {"_id": "$shop", "number": {"$sum": 1}}
    results = aggregate(master, {"$group": group})
    assert {row["objectId"]: row["number"] for row in results} == {
        sales["north"]: 2,
        sales["south"]: 2,
        None: 1,
    }
    assert aggregate(master, {"$sortByCount": "$shop"})[-1]["objectId"] is None
    raw = aggregate(master, {"$group": group}, rawFieldNames="true")
    assert {row["_id"] for row in raw} == {sales["north"], sales["south"], None}


def test_a_match_takes_the_id_of_a_pointer_for_the_pointer(master, sales):
    north, south = sales["north"], sales["south"]
    for condition, number in (
        (north, 2),
        ({"$eq": south}, 2),
        ({"$ne": north}, 2),
        ({"$in": [north, south]}, 4),
        ({"$nin": [north]}, 2),
        ("nobody0000", 0),
        ({"__type": "Pointer", "className": "Shop", "objectId": north}, 2),
    ):
        rows = aggregate(master, {"$match": {"shop": condition}}, {"$limit": 10})
        assert len(rows) == number, condition
    either = {"$or": [{"shop": north}, {"$and": [{"shop": south}, {"amount": 7}]}]}
    assert len(aggregate(master, {"$match": either})) == 3


def test_a_match_takes_text_for_the_date_of_a_date_field(master, sales):
    for day in (1, 2, 3):
        date = {"__type": "Date", "iso": f"2026-01-0{day}T00:00:00.000Z"}
        master.make("Visit", on=date, text=date["iso"])
    second = "2026-01-02T00:00:00.000Z"
    for condition, number in (
        ({"$lt": second}, 1),
        ({"$gte": "2026-01-02"}, 2),
        ({"$gt": second, "$lte": "2026-01-03T00:00:00Z"}, 1),
        (second, 1),
        ({"$in": [second, "2026-01-03T00:00:00.000Z"]}, 2),
        ({"$lt": {"$date": second}}, 1),
        ("no date", 0),
    ):
        rows = aggregate(master, {"$match": {"on": condition}}, class_name="Visit")
        assert len(rows) == number, condition
    assert len(aggregate(master, {"$match": {"text": second}}, class_name="Visit")) == 1
    nested = {"$or": [{"on": second}, {"$and": [{"on": {"$gt": second}}, {"text": "x"}]}]}
    assert len(aggregate(master, {"$match": nested}, class_name="Visit")) == 1


def test_distinct_values_take_a_constraint_in_either_form(master, sales):
    for where in ({"shopName": "south"}, json.dumps({"shopName": "south"})):
        reply = master.post(
            "/aggregate/Sale", {"_method": "GET", "distinct": "amount", "$where": where}
        )
        assert reply.json["results"] == [7]
    both = {"_method": "GET", "distinct": "amount", "where": {"a": 1}, "$where": {"a": 1}}
    assert master.post("/aggregate/Sale", both).error == (400, 102)
    bad = master.post("/aggregate/Sale", {"_method": "GET", "distinct": "a", "$where": "{"})
    assert bad.error == (400, 107)


def test_accumulators(master, sales):
    group = {
        "_id": None,
        "most": {"$max": "$amount"},
        "least": {"$min": "$amount"},
        "mean": {"$avg": "$amount"},
    }
    (result,) = aggregate(master, {"$group": group})
    assert (result["most"], result["least"]) == (10, 5)
    assert result["mean"] == pytest.approx(22 / 3)


def test_stages_work_one_after_the_other(master, sales):
    results = aggregate(
        master,
        {"$match": {"amount": {"$gt": 5}}},
        {"$addFields": {"double": {"$multiply": ["$amount", 2]}}},
        {"$sort": {"amount": -1}},
        {"$skip": 1},
        {"$limit": 1},
        {"$project": {"double": 1}},
    )
    assert [row["double"] for row in results] == [14]
    assert "amount" not in results[0]


def test_lists_are_unwound_and_rows_counted(master, sales):
    assert aggregate(master, {"$unwind": "$tags"}, {"$count": "tags"}) == [{"tags": 4}]


def test_a_sample_has_the_size_that_was_requested(master, sales):
    assert len(aggregate(master, {"$sample": {"size": 3}})) == 3


def test_other_classes_are_looked_up(master, sales):
    lookup = {"from": "Shop", "localField": "shopName", "foreignField": "name", "as": "found"}
    rows = aggregate(master, {"$lookup": lookup}, {"$limit": 1})
    assert rows[0]["found"][0]["name"] == rows[0]["shopName"]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"distinct": "shopName"}, ["north", "south"]),
        ({"distinct": "tags"}, ["a", "b", "c"]),
        ({"distinct": "place.x"}, ["north", "south"]),
        ({"distinct": "amount", "where": '{"amount":{"$gt":5}}'}, [7, 10]),
        ({"distinct": "nothing"}, []),
    ],
)
def test_distinct_values(master, sales, params, expected):
    assert sorted(aggregate(master, **params)) == expected


def test_distinct_pointers_are_pointers(master, sales):
    results = aggregate(master, distinct="shop")
    assert {pointer["objectId"] for pointer in results} == set(sales.values())
    assert all(pointer["__type"] == "Pointer" for pointer in results)


def test_a_match_alone_and_other_parameters_are_a_pipeline_too(master, sales):
    assert len(aggregate(master, **{"$match": '{"shopName":"north"}'})) == 2


@pytest.mark.parametrize(
    "stages",
    [
        [{"$unknown": {}}],
        [{"$out": "Sale"}],
        [{"$merge": {"into": "Sale"}}],
        [{"match": {}}],
        [{"$match": {}, "$limit": 1}],
        [{}],
        [5],
        [{"$group": {"total": {"$sum": 1}}}],
        [{"$group": {"_id": None, "objectId": {"$sum": 1}}}],
        [{"$limit": -1}],
        [{"$limit": "x"}],
        [{"$sort": {"amount": 2}}],
        [{"$lookup": {"from": "Shop"}}],
        [{"$group": {"_id": None, "a": {"$function": "x"}}}],
    ],
)
def test_a_stage_that_is_not_known_or_not_right_is_refused(master, sales, stages):
    reply = master.get("/aggregate/Sale", pipeline=json.dumps(stages))
    assert reply.status == 400
    assert reply.json["code"] in (102, 105, 107)
    assert len(master.results("Sale")) == 4


@pytest.mark.parametrize("pipeline", ["{", "5", '"x"', "null;"])
def test_a_pipeline_that_is_no_json_list_is_refused(master, sales, pipeline):
    assert master.get("/aggregate/Sale", pipeline=pipeline).status == 400


def test_only_the_master_keys_may(client, reader, sales):
    assert client.get("/aggregate/Sale", distinct="shopName").error == (403, 119)
    assert len(aggregate(reader, distinct="shopName")) == 2


def test_a_missing_class_is_empty(master):
    assert aggregate(master, {"$match": {}}, class_name="Nothing") == []


def test_a_pipeline_that_copies_a_value_over_and_over_is_refused_with_its_place(reader, sales):
    stages = [{"$addFields": {"shopName": {"$concat": ["$shopName"] * 10}}}] * 7
    reply = reader.get("/aggregate/Sale", pipeline=json.dumps(stages))
    assert reply.error == (400, 102)
    assert reply.json["error"].startswith("pipeline.4.$addFields.shopName: the value holds more")


def test_documents_that_are_too_large_for_a_pipeline_are_not_processed(reader, master, sales):
    master.make("Sale", text="x" * 1_000_000)
    copied = {"$strLenCP": {"$concat": ["$text"] * 50}}
    stages = [{"$project": {"a": copied, "b": copied}}]
    assert len(aggregate(reader, {"$match": {"shopName": "north"}}, *stages)) == 2
    reply = reader.get("/aggregate/Sale", pipeline=json.dumps(stages))
    assert reply.error == (413, 116)
    assert "document or an array that is too large" in reply.json["error"]


def test_formats_of_dates_are_short(reader, sales):
    text = {"$dateToString": {"date": "$createdAt", "format": "%Y" * 5000}}
    reply = reader.get("/aggregate/Sale", pipeline=json.dumps([{"$project": {"text": text}}]))
    assert reply.error == (400, 102)
