"""The aggregation pipeline in PostgreSQL: the same results as its stages have in memory."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from backend.kernel.errors import InvalidQuery
from objects.core.pipeline.operators.dates import DatePart
from objects.core.pipeline.parser import parse_aggregation
from objects.core.query.predicate import matches
from objects.core.values import equal, pointer
from objects.sql.pipeline.statement import compile_aggregation
from objects.sql.tables import ClassTable
from tests.objects.sql.world import DECLARED, GENERIC, PROMOTED, THINGS, World, thing
from tests.oracles.pipelines import document_of, result_of, run

WHEN = {"__type": "Date", "iso": "2024-02-29T23:59:58.123Z"}
EARLIER = {"__type": "Date", "iso": "2020-12-31T00:00:00.000Z"}


def in_sql(world: World, pipeline: Any, table: ClassTable = GENERIC, **params: Any) -> list[Any]:
    aggregation = parse_aggregation({"pipeline": pipeline, **params} if pipeline else params)
    statement = compile_aggregation(aggregation, table, world)
    world.fill_bounded(table)
    rows = world.connection.execute(
        f"SELECT value::text FROM ({statement.text}) AS s",  # type: ignore[arg-type]
        statement.params,
    ).fetchall()
    return [json.loads(row[0]) for row in rows]


def in_memory(world: World, pipeline: Any, table: ClassTable = GENERIC) -> list[Any]:
    aggregation = parse_aggregation({"pipeline": pipeline})
    documents = [document_of(stored(obj, table)) for obj in world.objects["Thing"]]
    output = run(aggregation.stages, documents, matches, world.objects.__getitem__)
    return [result_of(document) for document in output]


def stored(obj: dict[str, Any], table: ClassTable) -> dict[str, Any]:
    """The object as its table keeps it: columns don't tell null from missing."""
    return {
        name: value for name, value in obj.items() if name not in table.columns or value is not None
    }


def check(world: World, pipeline: Any) -> list[Any]:
    """The results, which are the same from every table and in memory."""
    for name, table in THINGS.items():
        expected = in_memory(world, pipeline, table)
        results = in_sql(world, pipeline, table)
        differing = [(f, e) for f, e in zip_longest(results, expected) if not equal(f, e)]
        assert not differing, (name, pipeline)
    return in_memory(world, pipeline)


@pytest.fixture
def things(world: World) -> World:
    world.fill(
        [
            thing("a", name="Ann", score=5, count=1, when=WHEN, tags=["x", "y"],
                  info={"a": 1, "b": {"c": "deep"}}, owner=pointer("Other", "o1")),
            thing("b", name="Bob", score=2.5, count=1, when=EARLIER, tags=[], flag=True,
                  info={"a": [{"c": 1, "d": 2}, 7, {"d": 3}]}, owner=pointer("Other", "o2")),
            thing("c", name="Cyd", score=None, count=2, tags=["x", None, 3], flag=False,
                  info={"a": None}),
            thing("d", score=5, info={"list": [{"n": 1}, {"n": 2}]}, tags=["y", "x"]),
        ],
        [
            thing("o1", name="One", score=5, tags=["x"], thing=pointer("Thing", "a")),
            thing("o2", name="Two", score=1, thing=pointer("Thing", "a")),
            thing("o3", name="Three", tags=["y", pointer("Thing", "b")]),
        ],
    )  # fmt: skip
    return world


GROUPS = {"_id": None, "total": {"$sum": "$score"}, "mean": {"$avg": "$score"}, "n": {"$sum": 1}}


def test_the_extremes_of_a_constant_are_the_constant(things):
    group = {"_id": None, "text": {"$max": "a"}, "flag": {"$min": {"$literal": False}}}
    assert check(things, [{"$group": group}]) == [{"objectId": None, "text": "a", "flag": False}]


def test_all_objects_are_one_group_under_null(things):
    assert check(things, [{"$group": GROUPS}]) == [
        {"objectId": None, "total": 12.5, "mean": 12.5 / 3, "n": 4}
    ]


def test_no_objects_make_no_group_and_no_count(things):
    nothing = {"$match": {"name": "nobody"}}
    assert check(things, [nothing, {"$group": GROUPS}]) == []
    assert check(things, [nothing, {"$count": "n"}]) == []


def test_groups_by_a_field_come_in_the_order_of_their_keys_and_null_is_missing(things):
    assert check(things, [{"$group": {"_id": "$score", "n": {"$count": {}}}}]) == [
        {"objectId": None, "n": 1},
        {"objectId": 2.5, "n": 1},
        {"objectId": 5, "n": 2},
    ]


def test_groups_by_several_fields_and_parts_of_dates(things):
    key = {"year": {"$year": "$when"}, "count": "$count"}
    results = check(things, [{"$group": {"_id": key}}, {"$sort": {"_id.count": 1, "_id.year": 1}}])
    assert [group["objectId"] for group in results] == [
        {"year": None},
        {"year": 2020, "count": 1},
        {"year": 2024, "count": 1},
        {"year": None, "count": 2},
    ]


def test_accumulators(things):
    group = {
        "_id": "$count",
        "least": {"$min": "$name"},
        "most": {"$max": "$score"},
        "latest": {"$max": "$when"},
        "first": {"$first": "$name"},
        "last": {"$last": "$flag"},
        "all": {"$push": {"n": "$name", "f": "$flag"}},
        "set": {"$addToSet": "$score"},
    }
    first, second, third = check(things, [{"$sort": {"objectId": 1}}, {"$group": group}])
    assert first == {
        "objectId": None, "least": None, "most": 5, "latest": None, "first": None, "last": None,
        "all": [{}], "set": [5],
    }  # fmt: skip
    assert second["all"] == [{"n": "Ann"}, {"n": "Bob", "f": True}]
    assert second["latest"] == WHEN
    assert second["set"] == [2.5, 5]
    assert third["set"] == [None]
    assert third["most"] is None


def test_the_order_of_documents_is_the_order_of_first_last_and_push(things):
    group = {"$group": {"_id": None, "names": {"$push": "$name"}, "first": {"$first": "$name"}}}
    [results] = check(things, [{"$sort": {"name": -1}}, group])
    assert results["names"] == ["Cyd", "Bob", "Ann"]
    assert results["first"] == "Cyd"


@pytest.mark.parametrize(
    ("stage", "expression", "values"),
    [
        ("year", {"$year": "$when"}, 2024),
        ("month", {"$month": "$when"}, 2),
        ("day", {"$dayOfMonth": "$when"}, 29),
        ("weekday", {"$dayOfWeek": "$when"}, 5),
        ("yearday", {"$dayOfYear": "$when"}, 60),
        ("hour", {"$hour": "$when"}, 23),
        ("minute", {"$minute": "$when"}, 59),
        ("second", {"$second": {"date": "$when"}}, 58),
        ("ms", {"$millisecond": {"date": "$when", "timezone": "UTC"}}, 123),
        ("week", {"$week": "$when"}, 8),
        ("isoweek", {"$isoWeek": "$when"}, 9),
        ("isoyear", {"$isoWeekYear": "$when"}, 2024),
        ("isoday", {"$isoDayOfWeek": "$when"}, 4),
        ("text", {"$dateToString": {"format": "%Y/%m/%d %H:%M:%S.%L %j%%", "date": "$when"}},
         "2024/02/29 23:59:58.123 060%"),
        ("iso", {"$dateToString": {"date": "$when"}}, "2024-02-29T23:59:58.123Z"),
        ("created", {"$year": "$createdAt"}, 2024),
        ("hour there", {"$hour": {"date": "$when", "timezone": "America/New_York"}}, 18),
        ("day there", {"$dayOfMonth": {"date": "$when", "timezone": "+0530"}}, 1),
        ("minute there", {"$minute": {"date": "$when", "timezone": "-03"}}, 59),
        ("text there", {"$dateToString": {"date": "$when", "timezone": "Europe/Berlin"}},
         "2024-03-01T00:59:58.123"),
        ("day there", {"$dateTrunc": {"date": "$when", "unit": "day", "timezone": "Asia/Tokyo"}},
         {**WHEN, "iso": "2024-02-29T15:00:00.000Z"}),
        ("week begins", {"$dateTrunc": {"date": "$when", "unit": "week"}},
         {**WHEN, "iso": "2024-02-25T00:00:00.000Z"}),
        ("week of Monday", {"$dateTrunc": {"date": "$when", "unit": "week", "startOfWeek": "Mon"}},
         {**WHEN, "iso": "2024-02-26T00:00:00.000Z"}),
        ("half years", {"$dateTrunc": {"date": "$when", "unit": "month", "binSize": 6}},
         {**WHEN, "iso": "2024-01-01T00:00:00.000Z"}),
        ("quarter begins", {"$dateTrunc": {"date": "$createdAt", "unit": "quarter"}},
         {**WHEN, "iso": "2024-01-01T00:00:00.000Z"}),
        ("no date", {"$dateTrunc": {"date": "$name", "unit": "year"}}, None),
        ("add", {"$add": ["$score", 1, "$count"]}, 7),
        ("add date", {"$add": ["$when", 1000]}, {**WHEN, "iso": "2024-02-29T23:59:59.123Z"}),
        ("add text", {"$add": ["$name", 1]}, None),
        ("dates apart", {"$subtract": ["$when", {"$date": "2024-02-29T00:00:00Z"}]}, 86398123),
        ("earlier", {"$subtract": ["$when", 123]}, {**WHEN, "iso": "2024-02-29T23:59:58.000Z"}),
        ("beyond", {"$add": ["$when", 1e15]}, None),
        ("multiply", {"$multiply": ["$score", 0.1, 3]}, 1.5),
        ("divide", {"$divide": ["$score", 3]}, 5 / 3),
        ("by zero", {"$divide": ["$score", 0]}, None),
        ("mod", {"$mod": [-7, "$score"]}, -2),
        ("mod zero", {"$mod": ["$score", 0]}, None),
        ("abs", {"$abs": -2.5}, 2.5),
        ("ceil", {"$ceil": 2.1}, 3),
        ("floor", {"$floor": -2.1}, -3),
        ("round", {"$round": 2.5}, 2),
        ("round up", {"$round": [3.5, 0]}, 4),
        ("round down", {"$round": -2.5}, -2),
        ("round digits", {"$round": [1.255, 2]}, 1.26),
        ("round tens", {"$round": [1250, -2]}, 1200),
        ("concat", {"$concat": ["$name", "-", {"$toUpper": "é" "x"}, {"$toLower": "ÀB"}]},
         "Ann-éXÀb"),
        ("concat missing", {"$concat": ["$name", "$nothing"]}, None),
        ("substr", {"$substr": ["$name", 1, 1]}, "n"),
        ("substr rest", {"$substrCP": ["a\U0001f600bc", 1, -1]}, "\U0001f600bc"),
        ("substr null", {"$substr": ["$nothing", 0, 1]}, ""),
        ("length", {"$strLenCP": "a\U0001f600"}, 2),
        ("cond", {"$cond": [{"$gte": ["$score", 5]}, "much", "little"]}, "much"),
        ("cond named", {"$cond": {"if": "$flag", "then": 1, "else": "$name"}}, "Ann"),
        ("switch", {"$switch": {"branches": [{"case": False, "then": 1},
                                             {"case": "$score", "then": 2}]}}, 2),
        ("if null", {"$ifNull": ["$nothing", None, "$flag", 7]}, 7),
        ("equal", {"$eq": ["$score", 5.0]}, True),
        ("missing is not null", {"$eq": ["$nothing", None]}, False),
        ("kinds", {"$lt": ["$score", "$name"]}, True),
        ("compare", {"$cmp": ["b", "aa"]}, 1),
        ("compare dates", {"$gt": ["$when", "$createdAt"]}, True),
        ("and", {"$and": ["$score", {"$not": "$flag"}]}, True),
        ("and none", {"$and": []}, True),
        ("or none", {"$or": []}, False),
        ("in", {"$in": ["x", "$tags"]}, True),
        ("in text", {"$in": ["x", "$name"]}, None),
        ("size", {"$size": "$tags"}, 2),
        ("size of text", {"$size": "$name"}, None),
        ("element", {"$arrayElemAt": ["$tags", -1]}, "y"),
        ("first", {"$first": "$tags"}, "x"),
        ("last", {"$last": "$tags"}, "y"),
        ("joined", {"$concatArrays": ["$tags", [1], []]}, ["x", "y", 1]),
        ("is array", {"$isArray": "$tags"}, True),
        ("items", ["$name", "$nothing", 1], ["Ann", None, 1]),
        ("object", {"a": "$name", "b": "$nothing", "c": {"d": "$info.b.c"}},
         {"a": "Ann", "c": {"d": "deep"}}),
        ("literal", {"$literal": "$name"}, "$name"),
        ("id of a pointer", "$owner.objectId", "o1"),
    ],
)  # fmt: skip
def test_expressions(things, stage, expression, values):
    results = check(things, [{"$project": {"value": expression}}, {"$sort": {"objectId": 1}}])
    value = results[0]["value"]
    assert equal(value, values), value


def test_a_path_goes_through_arrays_of_objects(things):
    results = check(things, [{"$project": {"_id": 0, "v": "$info.list.n"}}, {"$sort": {"v": 1}}])
    assert results[-1] == {"v": [1, 2]}
    assert {} in results


def test_a_missing_value_makes_no_field(things):
    assert check(things, [{"$match": {"name": "Ann"}}, {"$project": {"v": "$nothing"}}]) == [
        {"objectId": "a"}
    ]
    assert check(
        things,
        [{"$match": {"name": "Ann"}}, {"$addFields": {"name": "$nothing", "x": 1}},
         {"$project": {"name": 1, "x": 1}}],
    ) == [{"objectId": "a", "x": 1}]  # fmt: skip


@pytest.mark.parametrize(
    "projection",
    [
        {"name": 1},
        {"name": 1, "_id": 0},
        {"name": True, "objectId": False, "createdAt": 1},
        {"name": 0, "_id": 0},
        {"_id": 0},
        {"_id": 1},
        {"info.a": 1},
        {"info": {"b": {"c": 1}}, "tags": 1},
        {"info.a.c": 1},
        {"info.a.c": 0},
        {"info.b": 0, "name": 0, "createdAt": 0},
        {"info.a.new": "$name"},
        {"info.new.x": {"$add": ["$score", 1]}, "info.b": 1},
        {"owner.objectId": 1},
        {"objectId": "$name"},
    ],
)
def test_projections(things, projection):
    check(things, [{"$project": projection}])
    check(things, [{"$addFields": {"z": 1}}, {"$project": projection}, {"$match": {}}])


@pytest.mark.parametrize(
    "fields",
    [
        {"sum": {"$add": ["$score", "$count"]}},
        {"name": "$tags", "tags": "$name"},
        {"info.new": "$score"},
        {"info.a.x": "$name", "info.b.c": 5},
        {"info": {"a": {"y": 1}}},
        {"name.part": 1},
        {"objectId": "$name", "createdAt": "$when"},
        {"info.list.n": {"$literal": {"q": 1}}},
    ],
)
def test_added_fields(things, fields):
    check(things, [{"$addFields": fields}])
    check(things, [{"$set": fields}, {"$unset": ["info.a", "when"]}, {"$sort": {"_id": -1}}])


@pytest.mark.parametrize(
    "unwind",
    [
        "$tags",
        "$info.list",
        "$name",
        "$nothing",
        {"path": "$tags", "includeArrayIndex": "i"},
        {"path": "$tags", "preserveNullAndEmptyArrays": True, "includeArrayIndex": "i"},
        {"path": "$info.a", "preserveNullAndEmptyArrays": True},
    ],
)
def test_unwinding(things, unwind):
    check(things, [{"$unwind": unwind}])
    check(things, [{"$sort": {"name": -1, "_id": 1}}, {"$unwind": unwind}, {"$skip": 1},
                   {"$limit": 3}])  # fmt: skip


def test_tags_are_counted_by_unwinding_and_grouping(things):
    assert check(things, [{"$unwind": "$tags"}, {"$sortByCount": "$tags"}])[0] == {
        "objectId": "x",
        "count": 3,
    }


@pytest.mark.parametrize(
    "pipeline",
    [
        [{"$match": {"score": {"$gte": 3}}}],
        [{"$match": {"_id": {"$in": ["a", "c"]}}}],
        [{"$match": {"createdAt": {"$gt": {"$date": "2023-01-01"}}}}],
        [{"$match": {"$expr": {"$gt": ["$score", "$count"]}}}],
        [{"$addFields": {"s": "$score"}}, {"$match": {"s": {"$gte": 3}, "_id": {"$ne": "a"}}}],
        [{"$addFields": {"s": 1}}, {"$match": {"createdAt": {"$lt": "2025-01-01T00:00:00Z"}}}],
        [{"$addFields": {"s": 1}}, {"$match": {"tags": "x", "$or": [{"flag": False}, {"s": 2}]}}],
        [{"$addFields": {"s": 1}}, {"$match": {"info.a.d": 2}}],
        [{"$addFields": {"s": 1}}, {"$match": {"name": {"$regex": "^[AB]", "$options": "i"}}}],
        [{"$addFields": {"s": 1}}, {"$match": {"flag": None, "when": {"$exists": True}}}],
        [{"$group": {"_id": "$score", "n": {"$sum": 1}}}, {"$match": {"n": {"$gt": 1}}}],
        [{"$group": {"_id": "$score"}}, {"$match": {"objectId": {"$gt": 2}}}],
        [{"$match": {}}, {"$project": {"s": "$score"}}, {"$match": {"$expr": "$s"}}],
    ],
)
def test_matching_before_and_after_documents_are_changed(things, pipeline):
    assert check(things, [*pipeline, {"$sort": {"_id": 1}}])


def test_sorting_puts_missing_first_and_keeps_ties(things):
    results = check(things, [{"$sort": {"score": 1, "objectId": -1}}, {"$project": {"score": 1}}])
    assert [document["objectId"] for document in results] == ["c", "b", "d", "a"]
    results = check(things, [{"$sort": {"objectId": -1}}, {"$sort": {"score": -1}}])
    assert [document["objectId"] for document in results] == ["d", "a", "b", "c"]
    check(things, [{"$addFields": {"x": "$score"}}, {"$sort": {"x": -1, "name": 1, "_id": 1}}])


def test_limit_and_skip_apply_where_they_stand(things):
    order = {"$sort": {"objectId": 1}}
    for stages in ([{"$limit": 3}, {"$skip": 1}], [{"$skip": 1}, {"$limit": 3}], [{"$skip": 9}]):
        check(things, [order, *stages])
        check(things, [order, {"$addFields": {"x": 1}}, *stages])


def test_a_sample_is_so_many_documents(things):
    for size, number in ((2, 2), (99, 4)):
        results = in_sql(things, [{"$sample": {"size": size}}])
        assert len({document["objectId"] for document in results}) == number == len(results)


def test_counting(things):
    assert check(things, [{"$match": {"score": 5}}, {"$count": "found"}]) == [{"found": 2}]


@pytest.mark.parametrize(
    "lookup",
    [
        {"from": "Other", "localField": "owner", "foreignField": "objectId", "as": "o"},
        {"from": "Other", "localField": "owner", "foreignField": "_id", "as": "owner"},
        {"from": "Other", "localField": "objectId", "foreignField": "thing", "as": "o"},
        {"from": "Other", "localField": "score", "foreignField": "score", "as": "o"},
        {"from": "Other", "localField": "tags", "foreignField": "tags", "as": "o"},
        {"from": "Other", "localField": "_id", "foreignField": "tags", "as": "o"},
        {"from": "Other", "localField": "nothing", "foreignField": "thing.objectId", "as": "o"},
        {"from": "Other", "localField": "_id", "foreignField": "thing.objectId", "as": "o"},
        {"from": "Other", "localField": "owner", "foreignField": "objectId", "as": "o",
         "pipeline": [{"$project": {"name": 1}}]},
        {"from": "Other", "pipeline": [{"$match": {"score": {"$gt": 0}}}, {"$count": "n"}],
         "as": "o"},
        {"from": "Thing", "pipeline": [{"$sort": {"name": -1}}, {"$limit": 2},
                                       {"$project": {"name": 1}}], "as": "o"},
    ],
)  # fmt: skip
def test_looking_up_other_classes(things, lookup):
    check(things, [{"$lookup": lookup}])


def test_what_was_looked_up_can_be_unwound_and_grouped(things):
    pipeline = [
        {"$lookup": {"from": "Other", "localField": "owner", "foreignField": "_id", "as": "o"}},
        {"$unwind": "$o"},
        {"$group": {"_id": "$o.name", "year": {"$max": {"$year": "$o.createdAt"}}}},
    ]
    assert check(things, pipeline) == [
        {"objectId": "One", "year": 2024},
        {"objectId": "Two", "year": 2024},
    ]


def test_an_unknown_class_has_nothing_to_look_up(things):
    lookup = {"from": "Nothing", "localField": "a", "foreignField": "b", "as": "o"}
    results = in_sql(things, [{"$lookup": lookup}])
    assert all(document["o"] == [] for document in results)


def test_timestamps_are_shown_as_in_objects_unless_raw_ones_are_requested(things):
    pipeline = [{"$match": {"name": "Ann"}}, {"$project": {"createdAt": 1}}]
    stamp = "2024-01-01T00:00:00.000Z"
    moment = {"__type": "Date", "iso": stamp}
    assert in_sql(things, pipeline) == [{"objectId": "a", "createdAt": stamp}]
    assert in_sql(things, pipeline, rawValues=True) == [{"objectId": "a", "createdAt": moment}]
    assert in_sql(things, pipeline, rawFieldNames=True) == [{"_id": "a", "_created_at": moment}]


@pytest.mark.parametrize(
    ("params", "values"),
    [
        ({"distinct": "score"}, [2.5, 5]),
        ({"distinct": "tags"}, [3, "x", "y"]),
        ({"distinct": "info.a.d"}, [2, 3]),
        ({"distinct": "owner"}, [pointer("Other", "o1"), pointer("Other", "o2")]),
        ({"distinct": "_id", "where": {"score": 5}}, ["a", "d"]),
        ({"distinct": "nothing"}, []),
    ],
)
def test_distinct_values(things, params, values):
    for table in (GENERIC, PROMOTED, DECLARED):
        assert in_sql(things, None, table, **params) == values


def test_whose_relation_is_no_question_about_changed_documents(things):
    related = {"$relatedTo": {"object": pointer("Thing", "a"), "key": "likes"}}
    assert in_sql(things, [{"$match": related}]) == []
    with pytest.raises(InvalidQuery, match="relatedTo"):
        in_sql(things, [{"$addFields": {"x": 1}}, {"$match": related}])


HOSTILE = ["'; DROP TABLE thing; --", "a'b", 'a"b', "%s", "%(x)s", "a\\", "é", "{0}", "a b", "$$"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_values_of_clients_are_never_part_of_the_statement(things, name):
    key = name.replace("$", "S")
    pipeline = [
        {"$match": {"name": {"$ne": name}}},
        {"$addFields": {key: {"$literal": name}, "o": {key: "$" + key}}},
        {"$match": {f"o.{key}": {"$exists": False}}},
        {"$unwind": {"path": "$" + key, "includeArrayIndex": "i" + key}},
        {"$sort": {key: 1, "objectId": 1}},
        {"$project": {key: 1, "copy." + key: "$o." + key}},
        {"$lookup": {"from": "Other", "localField": key, "foreignField": key, "as": "l" + key}},
        {"$group": {"_id": "$" + key, key: {"$push": "$" + key}, "n": {"$sum": 1}}},
        {"$addFields": {"x": {"$concat": [{"$literal": name}, "$_id"]}}},
    ]
    statement = compile_aggregation(parse_aggregation({"pipeline": pipeline}), GENERIC, things)
    assert "DROP" not in statement.text
    assert statement.text.count("%s") == len(statement.params) == statement.text.count("%")
    assert check(things, pipeline)[0]["x"] == name * 2


# --- by property ---------------------------------------------------------------------------------

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.5, -2.5, 0.1, "", "a", "b", "B", "é", WHEN, EARLIER])
)
values = scalars | st.lists(scalars, max_size=2) | st.fixed_dictionaries({"x": scalars})
documents = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "score": st.none() | st.sampled_from([-1, 0, 1, 2.5, 0.1]),
            "name": st.none() | st.sampled_from(["", "a", "b"]),
            "flag": st.booleans(),
            "when": st.sampled_from([WHEN, EARLIER]),
            "tags": st.lists(scalars, max_size=3),
            "info": st.fixed_dictionaries({}, optional={"a": values, "b": values}),
        },
    ),
    max_size=5,
)
paths = st.sampled_from(
    ["$score", "$name", "$flag", "$when", "$tags", "$info", "$info.a", "$info.b.x", "$none",
     "$createdAt", "$_id", "$new", "$new.x"]
)  # fmt: skip
leaves = paths | scalars.map(lambda value: {"$literal": value})
ordered = leaves.filter(lambda leaf: leaf not in ("$info", "$tags", "$info.a", "$new"))
"""Values of kinds whose order is the same in memory."""
moments = st.sampled_from(["$when", "$createdAt", "$none", "$score", {"$date": "2021-01-03"}])

Strategy = st.SearchStrategy[Any]


def tuples(*operands: Strategy) -> Strategy:
    return st.tuples(*operands).map(list)


def one(inner: Strategy) -> Strategy:
    return tuples(inner)


def two(inner: Strategy) -> Strategy:
    return tuples(inner, inner)


def compared(inner: Strategy) -> Strategy:
    return tuples(ordered, ordered)


def moment(inner: Strategy) -> Strategy:
    return moments | inner


zones = st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "+05:30", "-1145"])


def dated(inner: Strategy) -> Strategy:
    return moment(inner) | st.fixed_dictionaries({"date": moment(inner), "timezone": zones})


def part_of_text(inner: Strategy) -> Strategy:
    return tuples(inner, st.integers(-1, 3), st.integers(-1, 3))


def branches(inner: Strategy) -> Strategy:
    branch = st.fixed_dictionaries({"case": inner, "then": inner})
    many = st.lists(branch, min_size=1, max_size=2)
    return st.fixed_dictionaries({"branches": many, "default": inner})


OPERANDS = {
    **dict.fromkeys(["$abs", "$ceil", "$floor", "$round", "$toLower", "$toUpper"], one),
    **dict.fromkeys(["$strLenCP", "$not", "$size", "$isArray", "$first", "$last"], one),
    **dict.fromkeys(["$add", "$subtract", "$multiply", "$divide", "$mod", "$concat"], two),
    **dict.fromkeys(["$eq", "$ne", "$in", "$and", "$or", "$ifNull"], two),
    **dict.fromkeys(["$arrayElemAt", "$concatArrays"], two),
    **dict.fromkeys(["$gt", "$gte", "$lt", "$lte", "$cmp"], compared),
    **dict.fromkeys(["$substr", "$substrCP"], part_of_text),
    **dict.fromkeys(DatePart.names, dated),
    "$dateToString": lambda inner: st.fixed_dictionaries(
        {
            "date": moment(inner),
            "format": st.sampled_from(["%Y-%m-%d", "%H %M %S.%L", "%U %V %G"]),
            "timezone": zones,
        }
    ),
    "$dateTrunc": lambda inner: st.fixed_dictionaries(
        {
            "date": moment(inner),
            "unit": st.sampled_from(
                ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
            ),
            "binSize": st.sampled_from([1, 2, 7, 1000]),
            "timezone": zones,
            "startOfWeek": st.sampled_from(["monday", "sun", "Saturday"]),
        }
    ),
    "$cond": lambda inner: tuples(inner, inner, inner),
    "$switch": branches,
    "$literal": lambda inner: scalars,
    "$date": lambda inner: st.sampled_from(["2024-02-29", "1999-12-31T23:59:59.999Z"]),
}
"""The operands of each operator, made of inner expressions."""


def calls(inner: Strategy) -> Strategy:
    return st.one_of(
        st.builds(lambda operand, name=name: {name: operand}, operands(inner))
        for name, operands in OPERANDS.items()
    )


expressions = st.recursive(
    leaves,
    lambda inner: (
        calls(inner)
        | st.builds(lambda a, b: {"x": a, "y": b}, inner, inner)
        | st.lists(inner, max_size=2)
    ),
    max_leaves=5,
)
ACCUMULATED = {
    **dict.fromkeys(["$sum", "$avg", "$first", "$last", "$push"], leaves),
    **dict.fromkeys(["$min", "$max", "$addToSet"], ordered),
    "$count": st.just({}),
}
"""The operands of each accumulator."""
groups = st.builds(
    lambda key, values: {"$group": {"_id": key, **values}},
    st.sampled_from(["$score", "$name", "$when", "$flag", None, {"$year": "$when"}]),
    st.fixed_dictionaries(
        {f"a{name[1:]}": st.tuples(st.just(name), operand).map(lambda pair: dict([pair]))
         for name, operand in ACCUMULATED.items()}
    ),
)  # fmt: skip
BODIES = {
    "$match": st.builds(lambda e: {"$expr": e}, expressions)
    | st.sampled_from([{"info.a": "a"}, {"score": {"$gt": 0}}]),
    "$project": st.builds(lambda e: {"name": 1, "info.a": 1, "new": e}, expressions)
    | st.just({"info.a": 0, "score": 0}),
    "$addFields": st.builds(lambda e: {"new": e}, expressions),
    "$set": st.builds(lambda e: {"info.a.x": e}, expressions),
    "$unset": st.just(["info.a.x", "tags"]),
    "$sort": st.sampled_from(
        [{"score": 1, "name": -1, "_id": 1}, {"when": -1, "flag": 1, "_id": -1}]
    ),
    "$limit": st.just(3),
    "$skip": st.just(1),
    "$unwind": st.sampled_from(
        ["$tags", {"path": "$info.a", "preserveNullAndEmptyArrays": True, "includeArrayIndex": "i"}]
    ),
    "$lookup": st.sampled_from(
        [
            {"from": "Thing", "localField": "score", "foreignField": "score", "as": "same",
             "pipeline": [{"$sort": {"_id": 1}}, {"$project": {"name": 1}}]},
            {"from": "Thing", "pipeline": [{"$count": "number"}], "as": "all"},
        ]
    ),
}  # fmt: skip
"""The bodies of stages after which the documents are still those of the class."""
LAST = {
    "$group": groups,
    "$count": st.just({"$count": "number"}),
    "$sortByCount": st.sampled_from(["$score", "$name"]).map(lambda e: {"$sortByCount": e}),
}
"""Stages that end a pipeline here."""
stages = st.one_of(
    st.builds(lambda body, name=name: {name: body}, bodies) for name, bodies in BODIES.items()
)
pipelines = st.builds(
    lambda first, last: [{"$sort": {"_id": 1}}, *first, *last],
    st.lists(stages, max_size=3),
    st.lists(st.one_of(LAST.values()), max_size=1),
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(documents, pipelines)
@example([{"info": {"a": [{"x": 1}]}}], [{"$addFields": {"info.a.x": "$none"}}])
def test_any_pipeline_gives_the_same_in_sql_and_in_memory(world, made, pipeline):
    world.fill([thing(f"t{index}", **fields) for index, fields in enumerate(made)])
    check(world, pipeline)
