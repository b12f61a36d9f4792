"""What /aggregate takes, what it refuses, and what its stages mean."""

from __future__ import annotations

import pytest

from backend.kernel.errors import (
    IncorrectType,
    InvalidClassName,
    InvalidJSON,
    InvalidKeyName,
    InvalidQuery,
    ServiceError,
)
from objects.core.pipeline.expressions import Call, Field, Literal
from objects.core.pipeline.parser import parse_aggregation
from objects.core.pipeline.stages.groups import Group
from objects.core.pipeline.stages.joins import Lookup
from objects.core.pipeline.stages.selection import Limit, Match, Sort, SortKey
from objects.core.query.predicate import matches
from objects.core.query.tree import AllOf, Compare, Equals, Everything
from objects.core.values import pointer
from tests.oracles.pipelines import document_of, result_of, run

DATE = {"__type": "Date", "iso": "2024-02-29T23:59:58.123Z"}


def stages_of(pipeline):
    return parse_aggregation({"pipeline": pipeline}).stages


def results(pipeline, objects, others=()):
    documents = [document_of(obj) for obj in objects]
    output = run(stages_of(pipeline), documents, matches, lambda _name: others)
    return [result_of(document) for document in output]


# --- forms ---------------------------------------------------------------------------------------


def test_a_pipeline_comes_as_an_array_as_one_object_or_as_parameters():
    match, limit = {"$match": {"a": 1}}, {"$limit": 2}
    expected = (Match(Equals(("a",), 1)), Limit(2))
    assert parse_aggregation({"pipeline": [match, limit]}).stages == expected
    assert parse_aggregation({"pipeline": {**match, **limit}}).stages == expected
    assert parse_aggregation({**match, **limit}).stages == expected
    assert parse_aggregation({**match, **limit, "hint": "x", "explain": True}).stages == expected
    assert parse_aggregation({}).stages == ()


def test_distinct_values_are_requested_by_a_field_and_a_constraint():
    pipeline = parse_aggregation({"distinct": "a.b", "where": {"_id": "x"}})
    assert pipeline.distinct == ("a", "b")
    assert pipeline.where == Equals(("objectId",), "x")
    assert parse_aggregation({"distinct": "_id"}).distinct == ("objectId",)
    assert parse_aggregation({"distinct": "a"}).where == Everything()


def test_id_and_timestamps_have_the_names_of_mongodb_too():
    stages = stages_of(
        [
            {"$match": {"_created_at": {"$gt": {"$date": "2020-01-01"}}, "$or": [{"_id": "x"}]}},
            {"$sort": {"_updated_at": -1, "_id": 1}},
            {"$group": {"_id": "$_created_at"}},
        ]
    )
    after = {"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"}
    assert isinstance(stages[0].query, AllOf)
    assert stages[0].query.parts[0] == Compare(("createdAt",), "gt", after)
    assert stages[1] == Sort((SortKey(("updatedAt",), True), SortKey(("objectId",))))
    assert stages[2] == Group(Field(("createdAt",)), ())


def test_constants_are_recognised():
    [stage] = stages_of([{"$group": {"_id": {"a": [1, {"b": "x"}]}, "d": {"$max": DATE}}}])
    assert stage.key == Literal({"a": [1, {"b": "x"}]})
    assert stage.fields[0][1].operand == Literal(DATE)


def test_an_expression_is_kept_as_a_call():
    [stage] = stages_of([{"$match": {"$expr": {"$gt": ["$a.b", {"$literal": "$x"}]}}}])
    assert stage.condition == Call("$gt", (Field(("a", "b")), Literal("$x")))


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ([{"$match": {}, "$limit": 1}], "Pipeline stages should only have one key but found "
                                        r"\$match, \$limit\."),
        ([{}], r"Pipeline stages should only have one key but found \."),
        ([{"match": {}}], r"Invalid aggregate stage 'match'\."),
        ([{"$out": "x"}], r"Unrecognized pipeline stage name: '\$out'"),
        ([{"$geoNear": {}}], r"Unrecognized pipeline stage name: '\$geoNear'"),
        ([{"$group": {"a": {"$sum": 1}}}], "Invalid parameter for query: group. Missing key _id"),
        ([{"$group": {"_id": 1, "objectId": 1}}], "Cannot use 'objectId' in aggregation stage"),
        ([{"$group": {"_id": 1, "a": 1}}], r"pipeline\.0\.\$group\.a: expected an object with one"),
        ([{"$group": {"_id": 1, "a": {"$sum": 1, "$avg": 1}}}], "one accumulator"),
        ([{"$group": {"_id": 1, "a": {"$median": 1}}}], r"unknown group operator '\$median'"),
        ([{"$group": {"_id": 1, "a": {"$count": 1}}}], "expected {}"),
        ([{"$group": {"_id": 1, "a.b": {"$sum": 1}}}], "can't be the name of a field"),
        ([{"$group": {"_id": {"$bad": 1}}}], r"_id\.\$bad: unrecognized expression '\$bad'"),
        ([{"$group": "x"}], r"pipeline\.0\.\$group: expected an object"),
        ([{"$sort": {}}], "expected at least one field"),
        ([{"$sort": {"a": 2}}], r"\$sort\.a: expected 1 or -1"),
        ([{"$sort": {"a": True}}], "expected 1 or -1"),
        ([{"$sort": {"$a": 1}}], "bad field path"),
        ([{"$limit": 0}], "whole number of at least 1"),
        ([{"$limit": "1"}], "whole number"),
        ([{"$limit": 1.5}], "whole number"),
        ([{"$limit": True}], "whole number"),
        ([{"$limit": 10**30}], "whole number"),
        ([{"$skip": -1}], "whole number of at least 0"),
        ([{"$sample": {"size": 0}}], "whole number"),
        ([{"$sample": 5}], "expected an object"),
        ([{"$count": ""}], "expected a name"),
        ([{"$count": "a.b"}], "can't be the name"),
        ([{"$count": "$a"}], "bad field path"),
        ([{"$unwind": "tags"}], r"begins with \$"),
        ([{"$unwind": "$a.0"}], "without positions"),
        ([{"$unwind": {"path": "$a", "x": 1}}], "expected path"),
        ([{"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": 1}}], "true or false"),
        ([{"$project": {}}], "expected at least one field"),
        ([{"$project": {"a": 1, "b": 0}}], "either the fields to keep"),
        ([{"$project": {"a": 0, "b": "$a"}}], "either the fields to keep"),
        ([{"$project": {"a": 1, "a.b": 1}}], r"path collision at a\.b"),
        ([{"$project": {"a.b": 1, "a": 1}}], "path collision at a"),
        ([{"$addFields": {"a": {"__type": 1, "x": 2}, "a.__type": 1}}], "not a valid|__type"),
        ([{"$addFields": {"a": {"$add": [1], "$sum": 2}}}], "one operator"),
        ([{"$addFields": {"a": {"$subtract": [1]}}}], "expected 2 operands, found 1"),
        ([{"$addFields": {"a": {"$cond": {"if": 1, "then": 2}}}}], "if, then and else"),
        ([{"$addFields": {"a": {"$switch": {"branches": []}}}}], "branches"),
        ([{"$addFields": {"a": {"$round": [1, "$b"]}}}], "whole number from -20 to 100"),
        ([{"$addFields": {"a": {"$year": {"date": "$b", "timezone": "Mars"}}}}], "a time zone"),
        ([{"$addFields": {"a": {"$dateToString": {"date": "$b", "format": "%Q"}}}}], "format"),
        *(
            ([{"$addFields": {"a": {"$hour": {"date": "$b", "timezone": zone}}}}], "a time zone")
            for zone in ("Mars/Olympus", "", "+25:00", "UTC+3", 2, None, "$zone", "localtime")
        ),
        ([{"$addFields": {"a": {"$hour": {"date": "$b", "zone": "UTC"}}}}], r"\$hour\.zone"),
        ([{"$addFields": {"a": {"$dateTrunc": {"date": "$b"}}}}], "unit"),
        *(
            ([{"$addFields": {"a": {"$dateTrunc": {"date": "$b", "unit": "day", **part}}}}], name)
            for name, part in (
                ("unit", {"unit": "decade"}),
                ("binSize", {"binSize": 0}),
                ("binSize", {"binSize": 1001}),
                ("binSize", {"binSize": True}),
                ("startOfWeek", {"startOfWeek": "m"}),
                ("onNull", {"onNull": 1}),
            )
        ),
        ([{"$addFields": {"a": "$$NOW"}}], r"unknown variable \$\$NOW"),
        ([{"$addFields": {"a": "$"}}], "bad field path"),
        ([{"$addFields": {"a": "$a..b"}}], "bad field path"),
        ([{"$addFields": {"a": "$a.__proto__"}}], "bad field path"),
        ([{"$addFields": {"a": {"constructor": "$b"}}}], "bad field path"),
        ([{"$unset": 5}], "name of a field"),
        ([{"$unset": []}], "at least one"),
        ([{"$unset": [f"f{n}" for n in range(501)]}], r"\$unset: at most 500 fields"),
        ([{"$lookup": {"from": "A", "as": "x"}}], "localField and foreignField, or pipeline"),
        ([{"$lookup": {"from": "A", "as": "x", "localField": "a"}}], "localField and foreignField"),
        ([{"$lookup": {"from": "A", "as": "x", "pipeline": [], "let": {}}}], "let: not supported"),
        ([{"$match": {"a": 1}}] * 51, "at most 50 stages"),
    ],
)  # fmt: skip
def test_what_a_pipeline_may_not_be(pipeline, message):
    with pytest.raises((InvalidQuery, IncorrectType), match=message):
        stages_of(pipeline)


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"pipeline": "x"}, InvalidJSON),
        ({"pipeline": [5]}, InvalidJSON),
        ({"group": {"_id": 1}}, InvalidQuery),
        ({"pipeline": [], "other": 1}, InvalidQuery),
        ({"distinct": 5}, InvalidQuery),
        ({"distinct": "a", "pipeline": [{"$limit": 1}]}, InvalidQuery),
        ({"distinct": "a..b"}, InvalidQuery),
        ({"where": "x"}, InvalidJSON),
        ({"rawValues": 1}, InvalidQuery),
        ({"pipeline": [{"$match": {"a": {"$bad": 1}}}]}, InvalidJSON),
        ({"pipeline": [{"$match": {"a b": 1}}]}, InvalidKeyName),
        ({"pipeline": [{"$lookup": {"from": "a b", "as": "x", "pipeline": []}}]}, InvalidClassName),
    ],
)
def test_what_aggregate_refuses(params, error):
    with pytest.raises(error):
        parse_aggregation(params)


def test_nesting_is_bounded():
    deep = "$a"
    for _ in range(40):
        deep = {"$abs": deep}
    with pytest.raises(ServiceError, match="levels deep"):
        stages_of([{"$addFields": {"x": deep}}])
    inner = []
    for _ in range(5):
        inner = [{"$lookup": {"from": "A", "as": "x", "pipeline": inner}}]
    with pytest.raises(ServiceError, match="nested too deeply"):
        stages_of(inner)
    tree = 1
    for _ in range(40):
        tree = {"a": tree}
    with pytest.raises(ServiceError, match="at most 20 steps"):
        stages_of([{"$project": tree}])


@pytest.mark.parametrize(
    "expression",
    [
        {f"f{n}": "$a" for n in range(2_600)},
        ["$a", *range(5_000)],
        [{"$add": ["$a"] * 50}] * 100,
        [{"b": {"c": "$a"}}] * 1_300,
    ],
    ids=["fields", "members", "operands", "documents"],
)
def test_all_that_is_computed_is_bounded(expression):
    for pipeline in (
        [{"$group": {"_id": expression}}],
        [{"$match": {"$expr": {"$in": [1, expression]}}}],
        [{"$lookup": {"from": "A", "as": "x", "pipeline": [{"$addFields": {"x": expression}}]}}],
    ):
        with pytest.raises(InvalidQuery, match="pipeline: at most 5,000 fields, operators and"):
            stages_of(pipeline)


def test_constants_are_not_bounded():
    numbers = list(range(20_000))
    assert stages_of([{"$addFields": {"x": numbers}}])
    assert stages_of([{"$addFields": {"x": {"$in": ["$a", numbers]}}}])
    assert stages_of([{"$addFields": {"x": {"$literal": {f"f{n}": n for n in numbers}}}}])
    pointers = [pointer("A", f"a{n}") for n in range(10_000)]
    assert stages_of([{"$match": {"a": {"$in": pointers}}}])


def test_a_lookup_has_its_own_stages():
    lookup = {"from": "A", "as": "x", "localField": "_id", "foreignField": "p",
              "pipeline": [{"$limit": 1}]}  # fmt: skip
    assert stages_of([{"$lookup": lookup}]) == (
        Lookup("A", "x", ("objectId",), ("p",), (Limit(1),)),
    )


# --- meaning -------------------------------------------------------------------------------------

GAMES = [
    {"objectId": "a", "createdAt": "2024-01-01T00:00:00.000Z", "n": 1, "s": "x", "l": [1, 2]},
    {"objectId": "b", "createdAt": "2023-01-01T00:00:00.000Z", "n": 2, "s": "x", "l": []},
    {"objectId": "c", "createdAt": "2023-06-01T00:00:00.000Z", "s": "y", "ACL": {}},
]


def test_timestamps_are_dates_inside_and_text_outside():
    pipeline = [{"$match": {"n": 1}}, {"$project": {"createdAt": 1, "y": {"$year": "$createdAt"}}}]
    assert results(pipeline, GAMES) == [
        {"objectId": "a", "createdAt": "2024-01-01T00:00:00.000Z", "y": 2024}
    ]


def test_access_lists_and_relations_are_not_in_documents():
    relation = {"__type": "Relation", "className": "A"}
    assert document_of({"objectId": "a", "ACL": {}, "r": relation, "x": 1}) == {
        "objectId": "a",
        "x": 1,
    }


def test_grouping_counting_and_sorting():
    group = {"_id": {"$year": "$createdAt"}, "n": {"$sum": "$n"}, "of": {"$push": "$objectId"}}
    assert results([{"$group": group}, {"$sort": {"_id": -1}}], GAMES) == [
        {"objectId": 2024, "n": 1, "of": ["a"]},
        {"objectId": 2023, "n": 2, "of": ["b", "c"]},
    ]
    assert results([{"$sortByCount": "$s"}], GAMES) == [
        {"objectId": "x", "count": 2},
        {"objectId": "y", "count": 1},
    ]


def test_sums_are_exact_and_means_are_doubles():
    objects = [{"objectId": str(i), "n": n} for i, n in enumerate([0.1, 0.2, 2**50, "x", None])]
    [result] = results(
        [{"$match": {"n": {"$lt": 1}}}, {"$group": {"_id": None, "s": {"$sum": "$n"}}}], objects
    )
    assert result["s"] == 0.3
    [result] = results(
        [{"$skip": 2}, {"$group": {"_id": 1, "s": {"$sum": "$n"}, "m": {"$avg": "$n"}}}], objects
    )
    assert result == {"objectId": 1, "s": 2**50, "m": 2**50}


def test_unwinding_repeats_the_document():
    stages = [{"$unwind": {"path": "$l", "includeArrayIndex": "i"}}, {"$project": {"l": 1, "i": 1}}]
    assert results(stages, GAMES) == [
        {"objectId": "a", "l": 1, "i": 0},
        {"objectId": "a", "l": 2, "i": 1},
    ]
    stages = [{"$unwind": {"path": "$l", "preserveNullAndEmptyArrays": True}}, {"$count": "n"}]
    assert results(stages, GAMES) == [{"n": 4}]


def test_a_pointer_is_looked_up_by_its_id():
    players = [{"objectId": "p", "game": pointer("Game", "a")}, {"objectId": "q"}]
    lookup = {"from": "Player", "localField": "_id", "foreignField": "game", "as": "players"}
    observed = results([{"$lookup": lookup}, {"$project": {"players.objectId": 1}}], GAMES, players)
    assert observed[0] == {"objectId": "a", "players": [{"objectId": "p"}]}
    assert observed[1] == {"objectId": "b", "players": []}
    lookup = {"from": "Game", "localField": "game", "foreignField": "_id", "as": "game"}
    observed = results([{"$lookup": lookup}, {"$unwind": "$game"}], players, GAMES)
    assert [document["game"]["n"] for document in observed] == [1]
