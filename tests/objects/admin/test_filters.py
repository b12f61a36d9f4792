"""The filter builder: what it makes of forms is what the query language takes, and finds."""

from __future__ import annotations

from typing import get_args

import pytest

from objects.admin.grid.filters import BadValue, add, conditions, operators, read_where
from objects.core.query.parser import parse_where
from objects.core.schema.definition import FieldType
from objects.core.values import FieldKind

NUMBER, TEXT, DATE = FieldType("Number"), FieldType("String"), FieldType("Date")
POINTER = FieldType("Pointer", "_User")
SAMPLES: dict[str, str] = {
    "Number": "5",
    "Date": "2024-01-31T10:00:00Z",
    "Pointer": "abc",
    "Relation": "abc",
    "GeoPoint": "48.2, 16.3, 5",
    "Polygon": "1, 2",
}


@pytest.mark.parametrize(
    ("field", "operator", "text", "constraint"),
    [
        (NUMBER, "is", " 5 ", 5),
        (NUMBER, "gte", "-0.5", {"$gte": -0.5}),
        (NUMBER, "in", "1, 2,", {"$in": [1, 2]}),
        (NUMBER, "missing", "", {"$exists": False}),
        (TEXT, "is", " 5 ", " 5 "),
        (TEXT, "begins", "a.b", {"$regex": r"^a\.b"}),
        (TEXT, "contains", "(x)", {"$regex": r"\(x\)", "$options": "i"}),
        (DATE, "lt", "2024-01-31", {"$lt": {"__type": "Date", "iso": "2024-01-31T00:00:00.000Z"}}),
        (FieldType("Boolean"), "notTrue", "", {"$ne": True}),
        (
            POINTER,
            "isNot",
            "abc",
            {"$ne": {"__type": "Pointer", "className": "_User", "objectId": "abc"}},
        ),
        (FieldType("Array"), "contains", '"5"', "5"),
        (FieldType("Array"), "contains", "blitz", "blitz"),
        (FieldType("Array"), "all", "[1, 2]", {"$all": [1, 2]}),
        (FieldType("Object"), "is", '{"a": 1}', {"a": 1}),
    ],
)
def test_a_condition_by_its_type(field, operator, text, constraint):
    assert add({}, "f", field, operator, text) == {"f": constraint}


@pytest.mark.parametrize("kind", FieldKind.__args__)
def test_the_query_language_takes_all_that_is_offered(kind):
    field = FieldType(kind, "_User" if kind in ("Pointer", "Relation") else None)
    for operator in operators(field):
        made = add({}, "f", field, operator.key, SAMPLES.get(kind, "word"))
        parse_where(made)


@pytest.mark.parametrize(
    ("field", "operator", "text"),
    [
        (NUMBER, "is", "five"),
        (NUMBER, "is", "true"),
        (NUMBER, "is", ""),
        (NUMBER, "is", "NaN"),
        (NUMBER, "begins", "5"),
        (DATE, "lt", "tomorrow"),
        (FieldType("GeoPoint"), "near", "48.2, 16.3"),
        (FieldType("GeoPoint"), "near", "148.2, 16.3, 5"),
        (TEXT, "", ""),
    ],
)
def test_what_isn_t_a_value_is_said(field, operator, text):
    with pytest.raises(BadValue):
        add({}, "f", field, operator, text)


def test_conditions_on_one_field_are_joined_without_losing_any():
    where = add({}, "n", NUMBER, "gt", "1")
    where = add(where, "n", NUMBER, "lt", "9")
    assert where == {"n": {"$gt": 1, "$lt": 9}}
    where = add(where, "n", NUMBER, "gt", "3")
    assert where == {"n": {"$gt": 1, "$lt": 9}, "$and": [{"n": {"$gt": 3}}]}
    where = add(where, "n", NUMBER, "is", "5")
    assert where["$and"] == [{"n": {"$gt": 3}}, {"n": 5}]


def test_each_condition_can_be_taken_away():
    where = {"a": 1, "$and": [{"b": 2}, {"c": 3}]}
    results = conditions(where, {})
    assert [condition.text for condition in results] == ["a is 1", "b is 2", "c is 3"]
    assert read_where(results[0].remaining) == {"$and": [{"b": 2}, {"c": 3}]}
    assert read_where(results[1].remaining) == {"a": 1, "$and": [{"c": 3}]}
    assert read_where(conditions({"a": 1}, {})[0].remaining) == {}
    assert read_where(conditions({"$and": [{"b": 2}]}, {})[0].remaining) == {}


ANN = {"__type": "Pointer", "className": "_User", "objectId": "annsId1234"}


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"status": "paid"}, "status is “paid”"),
        ({"score": {"$gt": 5, "$lte": 9.5}}, "score > 5 and ≤ 9.5"),
        ({"won": True}, "won is true"),
        ({"score": None}, "score is null"),
        ({"player": ANN}, "player is Ann"),
        ({"player": {"$ne": ANN}}, "player is not Ann"),
        ({"player": {"$in": [ANN, {**ANN, "objectId": "other"}]}}, "player is one of Ann, other"),
        ({"at": {"$lt": {"__type": "Date", "iso": "2024-05-04T10:30:00.000Z"}}},
         "at < 2024-05-04 10:30:00"),
        ({"score": {"$nin": list(range(7))}}, "score is none of 0, 1, 2, 3, 4, 2 more"),
        ({"score": {"$exists": False}}, "score has no value"),
        ({"title": {"$regex": "^a\\.b"}}, "title begins with “a.b”"),
        ({"title": {"$regex": "a", "$options": "i"}}, "title contains “a”, in any case"),
        ({"title": {"$regex": "a.*b"}}, "title matches the expression a.*b"),
        ({"title": {"$text": {"$search": {"$term": "big red"}}}}, "title has the words “big red”"),
        ({"details": {"a": 1}}, 'details is {"a":1}'),
        ({"tags": {"$all": ["a"]}}, "tags contains all of “a”"),
        ({"place": {"$geoWithin": {"$centerSphere": [[1, 2], 3]}}},
         'place: {"$geoWithin":{"$centerSphere":[[1,2],3]}}'),
        ({"$or": [{"a": 1}, {"b": 2}]}, '{"$or":[{"a":1},{"b":2}]}'),
    ],
)  # fmt: skip
def test_conditions_are_shown_in_words(where, words):
    labels = {("_User", "annsId1234"): "Ann"}
    assert [condition.text for condition in conditions(where, labels)] == [words]


@pytest.mark.parametrize("kind", get_args(FieldKind))
def test_every_filter_of_the_form_has_words(kind):
    target = "_User" if kind in ("Pointer", "Relation") else None
    field = FieldType(kind, target)
    for operator in operators(field):
        text = SAMPLES.get(kind, "a")
        try:
            where = add({}, "f", field, operator.key, text)
        except BadValue:
            continue  # the sample isn't for this one
        (condition,) = conditions(where, {})
        assert condition.text.startswith("f")
