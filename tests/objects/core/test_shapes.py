"""Shapes of queries, and the indexes that serve them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objects.core.indexes.shapes import (
    MAX_INDEX_FIELDS,
    Shape,
    candidates,
    decode,
    index_for,
    is_part_of,
    led_by_constants,
    served_equality,
    shape_of,
)
from objects.core.query.parser import parse_order, parse_where
from objects.core.query.tree import OneOfIds, OrderKey, ReadableBy, all_of
from objects.core.schema.definition import ClassSchema, FieldType

SCHEMA = ClassSchema(
    "Game",
    {
        "rank": FieldType("Number"),
        "level": FieldType("Number"),
        "name": FieldType("String"),
        "status": FieldType("String"),
        "email": FieldType("String", unique=True),
        "won": FieldType("Boolean"),
        "at": FieldType("Date"),
        "owner": FieldType("Pointer", "_User"),
        "spot": FieldType("GeoPoint"),
        "area": FieldType("Polygon"),
        "tags": FieldType("Array"),
        "info": FieldType("Object"),
        "fans": FieldType("Relation", "_User"),
    },
)
POINT = {"__type": "GeoPoint", "latitude": 1, "longitude": 2}
DATE = {"__type": "Date", "iso": "2024-01-01T00:00:00.000Z"}


def shape(where: Any, order: str = "createdAt") -> Shape:
    results = shape_of(parse_where(where), parse_order(order), SCHEMA)
    assert results is not None
    return results


# -- Shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "conditions"),
    [
        ({}, ()),
        ({"rank": 5}, (("rank", "equality"),)),
        ({"rank": {"$gte": 5, "$lt": 9}}, (("rank", "range"),)),
        ({"rank": 5, "$and": [{"rank": {"$lt": 9}}]}, (("rank", "equality"),)),
        ({"rank": {"$lt": 9, "$exists": True}}, (("rank", "range"),)),
        ({"name": {"$regex": "^ab"}}, (("name", "prefix"),)),
        ({"name": {"$regex": "^ab.*c$"}}, (("name", "prefix"),)),
        ({"name": {"$regex": "ab"}}, (("name", "filter"),)),
        ({"name": {"$regex": "^.*ab"}}, (("name", "filter"),)),
        ({"name": {"$regex": "^ab", "$options": "i"}}, (("name", "filter"),)),
        ({"rank": None}, (("rank", "filter"),)),
        ({"rank": {"$ne": 1}}, (("rank", "filter"),)),
        ({"rank": {"$in": [1, 2]}}, (("rank", "filter"),)),
        ({"info.a": 1}, (("info", "filter"),)),
        ({"info.a": {"$gt": 1}}, (("info", "filter"),)),
        ({"unknown": 1}, ()),
        (
            {"$or": [{"rank": {"$gt": 1}}, {"level": 2}]},
            (("level", "filter"), ("rank", "alternative")),
        ),
        ({"spot": {"$nearSphere": POINT}}, (("spot", "filter"),)),
        (
            {"spot": {"$nearSphere": POINT, "$maxDistanceInKilometers": 5}},
            (("spot", "place"),),
        ),
    ],
)
def test_a_shape_says_how_each_field_is_requested(where, conditions):
    assert shape(where).conditions == conditions


def test_access_lists_are_no_part_of_a_shape_and_ids_are_equality():
    where = all_of(parse_where({"rank": 1}), ReadableBy(frozenset({"*"})))
    assert shape_of(where, (), SCHEMA) == Shape((("rank", "equality"),))
    results = shape_of(OneOfIds(frozenset({"a"})), (), SCHEMA)
    assert results == Shape((("objectId", "equality"),))


def test_the_order_is_a_part_of_the_shape_unless_no_index_has_it():
    assert shape({}, "rank,-at").order == (("rank", False), ("at", True))
    assert shape({}, "info.a").order == ()
    assert shape({}, "unknown").order == ()


def test_long_queries_have_no_shape():
    keys = tuple(OrderKey((name,)) for name in ("rank", "level", "name", "at", "won"))
    assert shape_of(parse_where({}), keys, SCHEMA) is None
    everything = {name: {"$exists": True} for name in SCHEMA.fields}
    assert shape_of(parse_where(everything), (), SCHEMA) is None


_fields = st.sampled_from(sorted(SCHEMA.fields))
_uses = st.sampled_from(["equality", "range", "prefix", "place", "text", "alternative", "filter"])
_shapes = st.builds(
    lambda uses, order: Shape(tuple(sorted(uses.items())), tuple(order.items())),
    st.dictionaries(_fields | st.sampled_from(["createdAt", "objectId"]), _uses, max_size=5),
    st.dictionaries(
        _fields | st.sampled_from(["createdAt", "updatedAt"]), st.booleans(), max_size=4
    ),
)


@given(_shapes)
def test_a_shape_is_what_its_text_says(one):
    assert decode(one.encode()) == one


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", "{", '{"where":1,"order":[]}', '{"where":{"a":"b"},"order":[]}'],
)
def test_another_text_is_no_shape(text):
    assert decode(text) is None


_numbers = st.integers(-5, 5)
_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)


@given(_numbers, _numbers, _texts, _texts)
def test_values_are_no_part_of_a_shape(one, other, name, other_name):
    assert shape({"rank": {"$gt": one}, "name": name}) == shape(
        {"rank": {"$gt": other}, "name": other_name}
    )
    assert "value" not in shape({"name": f"value {name}"}).encode()


# -- Indexes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "order", "fields"),
    [
        ({"rank": {"$gte": 1}}, "rank", (("rank", 1),)),
        ({"rank": {"$gte": 1}}, "-rank", (("rank", 1),)),
        ({}, "-rank", (("rank", 1),)),
        ({"rank": {"$gte": 1}}, "createdAt", (("rank", 1),)),
        ({"status": "a"}, "-createdAt", (("status", 1), ("createdAt", 1))),
        ({"status": "a"}, "rank,-at", (("status", 1), ("rank", 1), ("at", -1))),
        ({"status": "a", "rank": {"$gt": 1}}, "createdAt", (("status", 1), ("rank", 1))),
        ({"status": "a", "rank": {"$gt": 1}}, "rank", (("status", 1), ("rank", 1))),
        ({"status": "a"}, "status,rank", (("status", 1), ("rank", 1))),
        ({"name": {"$regex": "^ab"}}, "createdAt", (("name", 1),)),
        ({"at": {"$lt": DATE}}, "-at", (("at", 1),)),
        ({}, "-updatedAt", (("updatedAt", 1),)),
        ({}, "rank,info", (("rank", 1),)),
        (
            {"spot": {"$nearSphere": POINT, "$maxDistanceInKilometers": 5}},
            "createdAt",
            (("spot", "2dsphere"),),
        ),
        # What every class has an index for, or none of ours serves:
        ({}, "createdAt", None),
        ({}, "-createdAt", None),
        ({"createdAt": {"$gt": DATE}}, "-createdAt", None),
        ({"status": "a"}, "info.a", None),
        ({"status": {"$in": ["a", "b"]}}, "createdAt", None),
        ({"objectId": "a"}, "rank", None),
        ({"email": "a"}, "rank", None),
        ({"tags": "a"}, "createdAt", None),
        ({}, "tags", None),
        ({}, "spot", None),
        ({"spot": {"$nearSphere": POINT}}, "createdAt", None),
        ({"area": {"$geoIntersects": {"$point": POINT}}}, "createdAt", None),
        ({"name": {"$text": {"$search": {"$term": "a"}}}}, "createdAt", None),
        ({"$or": [{"rank": {"$gt": 1}}, {"level": {"$gt": 2}}]}, "createdAt", None),
    ],
)
def test_a_shape_has_the_index_that_serves_it(where, order, fields):
    assert index_for(shape(where, order), SCHEMA) == fields


@given(_shapes)
def test_candidates_can_be_built_and_none_is_part_of_an_earlier_one(one):
    results = candidates(one, SCHEMA)
    for place, fields in enumerate(results):
        names = [name for name, _ in fields]
        assert 1 <= len(names) <= MAX_INDEX_FIELDS
        assert len(set(names)) == len(names)
        assert set(names) <= one.names
        for name, direction in fields:
            kind = SCHEMA.field_type(name).kind
            if direction == "2dsphere":
                assert kind == "GeoPoint"
            else:
                assert kind in ("String", "Number", "Boolean", "Date", "Pointer")
        assert not any(is_part_of(fields, earlier) for earlier in results[:place])


@given(_shapes)
def test_both_directions_share_an_index(one):
    turned = Shape(one.conditions, tuple((name, not down) for name, down in one.order))
    assert candidates(one, SCHEMA) == candidates(turned, SCHEMA)


@pytest.mark.parametrize(
    ("fields", "other", "expected"),
    [
        ((("a", 1),), (("a", 1),), True),
        ((("a", 1),), (("a", -1),), True),
        ((("a", 1),), (("a", 1), ("b", 1)), True),
        ((("a", 1), ("b", 1)), (("a", 1),), False),
        ((("a", 1), ("b", 1)), (("a", -1), ("b", -1)), True),
        ((("a", 1), ("b", 1)), (("a", 1), ("b", -1)), False),
        ((("a", "2dsphere"),), (("a", "2dsphere"),), True),
        ((("a", "2dsphere"),), (("a", 1),), False),
    ],
)
def test_an_index_has_all_that_its_beginning_has_in_either_direction(fields, other, expected):
    assert is_part_of(fields, other) is expected


@pytest.mark.parametrize(
    ("where", "order", "led"),
    [
        ({"status": "a"}, "rank", {"status"}),
        ({"status": "a"}, "-rank", {"status"}),
        ({"status": "a", "rank": {"$gt": 1}}, "createdAt", {"status"}),
        ({"status": "a"}, "status,rank", {"status"}),
        ({"status": "a"}, "level", set()),
        ({"status": "a", "rank": 1}, "level", set()),
        ({"status": None}, "rank", set()),
        ({"rank": {"$gt": 1}}, "rank", set()),
        ({"$or": [{"status": "a"}, {"status": "b"}]}, "rank", set()),
    ],
)
def test_equality_leads_into_an_index_only_where_the_rest_of_it_serves_as_well(where, order, led):
    learned = ((("status", 1), ("rank", 1)), (("rank", 1),))
    assert served_equality(learned, parse_where(where), parse_order(order)) == led


@pytest.mark.parametrize(
    ("where", "led"),
    [
        ({"status": "a", "rank": 1}, {"rank"}),
        ({"status": {"$in": ["a", "b"]}, "rank": 1, "level": 2}, {"rank", "level"}),
        ({"status": "a", "level": 2}, set()),
        ({"status": "a"}, set()),
        ({"rank": 1, "level": 2}, set()),
        ({"status": {"$gt": "a"}, "rank": 1}, set()),
        ({"status.x": "a", "rank": 1}, set()),
        ({"$or": [{"status": "a", "rank": 1}]}, set()),
        ({"$or": [{"status": "a"}, {"rank": 1}]}, set()),
    ],
)
def test_an_index_is_led_into_as_far_as_its_fields_have_certain_values(where, led):
    declared = ((("status", 1), ("rank", 1), ("level", -1)), (("title", "text"), ("rank", 1)))
    assert led_by_constants(declared, parse_where(where)) == led
