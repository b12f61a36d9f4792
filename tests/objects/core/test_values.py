"""What clients may send as values, and the one form in which they are kept."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.errors import IncorrectType, InvalidJSON, InvalidKeyName, InvalidNestedKey
from backend.kernel.json_types import Json
from objects.core import values
from objects.core.values import equal, kind, normalise, normalise_date, number_key

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcdefghABCD_-é", min_size=1, max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_a_normalised_value_is_equal_to_what_was_sent_and_stays_as_it_is(value):
    once = normalise(value, "field")
    assert equal(once, value)
    assert normalise(once, "field") == once


@given(json_values, json_values)
def test_equality_is_symmetric_and_agrees_with_the_frozen_form(a, b):
    assert equal(a, b) == equal(b, a) == (values.frozen(a) == values.frozen(b))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_the_decimal_that_its_shortest_spelling_names(number):
    normalised = normalise(number, "n")
    assert number_key(normalised) == Decimal(repr(number))
    assert isinstance(normalised, int) == (
        Decimal(repr(number)) % 1 == 0 if abs(number) < 1e20 else True
    )


@pytest.mark.parametrize(
    ("number", "stored"),
    [
        (1.0, 1),
        (-0.0, 0),
        (1e22, 10**22),
        (1e23, 10**23),
        (0.1, 0.1),
        (2**70, 2**70),
        (5e-324, 5e-324),
    ],
)
def test_whole_numbers_are_integers_and_big_ones_are_exact(number, stored):
    result = normalise(number, "n")
    assert result == stored
    assert type(result) is type(stored)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 10**1000, -(10**1000)])
def test_numbers_that_cannot_be_stored_are_refused(number):
    with pytest.raises(IncorrectType, match=r"^a\.b: "):
        normalise({"b": number}, "a")


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\ud800", "x\udfff"])
def test_text_that_cannot_be_stored_is_refused_as_value_and_as_key(text):
    with pytest.raises(IncorrectType):
        normalise(text, "f")
    with pytest.raises(IncorrectType):
        normalise({"a": [text]}, "f")
    with pytest.raises(IncorrectType):
        normalise({text: 1}, "f")


@pytest.mark.parametrize("key", ["$set", "a$", "a.b", "."])
def test_nested_keys_have_no_dollar_and_no_dot(key):
    with pytest.raises(InvalidNestedKey, match="Nested keys should not contain"):
        normalise({"a": [{key: 1}]}, "f")


@pytest.mark.parametrize("key", ["__proto__", "constructor", "prototype", "_bsontype"])
def test_keywords_of_javascript_are_refused_at_any_depth(key):
    with pytest.raises(InvalidKeyName, match="Prohibited keyword in request data"):
        normalise({"harmless": {}, "a": [{"b": {key: 1}}]}, "f")


def test_an_operator_inside_a_value_is_refused_and_never_stored():
    with pytest.raises(InvalidJSON, match="operator"):
        normalise({"counts": {"__op": "Increment", "amount": 1}}, "f")


def test_depth_is_limited_for_lists_and_for_objects():
    nested: Json = 1
    for level in range(values.MAX_DEPTH):
        nested = [nested] if level % 2 else {"a": nested}
    assert normalise(nested, "f") == nested
    with pytest.raises(InvalidJSON, match="nested more than 50 levels"):
        normalise([nested], "f")


def test_what_is_not_json_is_refused():
    for value in (object(), (1, 2), b"x", {1: 2}, Decimal(1)):
        with pytest.raises(InvalidJSON):
            normalise(value, "f")


def test_an_error_names_the_place_inside_the_value():
    with pytest.raises(IncorrectType, match=r"This is not a valid Date \(report\.days\.1\.iso: "):
        normalise({"days": [1, {"__type": "Date", "iso": "yesterday"}]}, "report")


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("2020-01-31", "2020-01-31T00:00:00.000Z"),
        ("2020-01-31T12:30Z", "2020-01-31T12:30:00.000Z"),
        ("2020-01-31T12:30:05", "2020-01-31T12:30:05.000Z"),
        ("2020-01-31T12:30:05.1Z", "2020-01-31T12:30:05.100Z"),
        ("2020-01-31T12:30:05.123999Z", "2020-01-31T12:30:05.123Z"),
        ("2020-01-31T23:30:05.5+02:00", "2020-01-31T21:30:05.500Z"),
        ("2020-01-31T23:30:05-0130", "2020-02-01T01:00:05.000Z"),
        ("2020-01-31 23:30:05,25z", "2020-01-31T23:30:05.250Z"),
        ("0033-01-01T00:00:00.000Z", "0033-01-01T00:00:00.000Z"),
    ],
)
def test_dates_are_kept_in_utc_with_milliseconds(sent, stored):
    assert normalise({"__type": "Date", "iso": sent}, "f") == {"__type": "Date", "iso": stored}
    assert normalise_date(stored) == stored


@pytest.mark.parametrize(
    "iso",
    [
        "", "2020", "2020-13-01", "2020-02-30", "2020-01-01T24:00:00Z", "2020-01-01T00:00:60Z",
        "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "2020-01-01T00:00:00Z\n",
        "20200101", "2020-W01-1", "٢٠٢٠-01-01", "now", 5, None, ["2020-01-01"],
    ],
)  # fmt: skip
def test_an_invalid_date_is_refused(iso):
    with pytest.raises(IncorrectType, match="This is not a valid Date"):
        normalise({"__type": "Date", "iso": iso}, "f")


@given(st.datetimes())
def test_every_moment_survives(moment):
    iso = moment.isoformat()
    stored = normalise_date(iso)
    assert normalise_date(stored) == stored
    assert stored == moment.isoformat(timespec="milliseconds") + "Z"


@pytest.mark.parametrize(
    "value",
    [
        {"__type": "Pointer", "className": "Game", "objectId": "abc", "extra": 1},
        {"__type": "Object", "className": "Game", "objectId": "abc", "score": 5},
    ],
)
def test_a_pointer_keeps_class_and_id_only(value):
    assert normalise(value, "f") == values.pointer("Game", "abc")
    assert kind(value) == "Pointer"


@pytest.mark.parametrize(
    "value",
    [
        {"__type": "Pointer"},
        {"__type": "Pointer", "className": "Game"},
        {"__type": "Pointer", "className": "Game", "objectId": ""},
        {"__type": "Pointer", "className": "Game", "objectId": "role:Admin"},
        {"__type": "Pointer", "className": "_Join:a:B", "objectId": "x"},
        {"__type": "Pointer", "className": ["Game"], "objectId": "x"},
        {"__type": "Pointer", "className": "Game", "objectId": {"$ne": ""}},
        {"__type": "GeoPoint", "latitude": 100, "longitude": 0},
        {"__type": "GeoPoint", "latitude": 0, "longitude": -180.5},
        {"__type": "GeoPoint", "latitude": True, "longitude": 0},
        {"__type": "GeoPoint", "latitude": "1", "longitude": 0},
        {"__type": "GeoPoint", "latitude": math.nan, "longitude": 0},
        {"__type": "GeoPoint", "latitude": 1},
        {"__type": "Bytes", "base64": "%%%"},
        {"__type": "Bytes", "base64": "AAA"},
        {"__type": "Bytes"},
        {"__type": "File"},
        {"__type": "File", "name": ""},
        {"__type": "File", "name": "a", "url": 5},
        {"__type": "Polygon", "coordinates": [[0, 0], [0, 1]]},
        {"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [0, 0], [0, 1]]},
        {"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [91, 1]]},
        {"__type": "Polygon", "coordinates": [[0, 0], [0, 1], "x"]},
        {"__type": "Polygon"},
        {"__type": "Relation"},
        {"__type": "Nonsense"},
        {"__type": 5},
        {"__type": None},
    ],
)
def test_a_typed_value_that_is_none_is_refused(value):
    with pytest.raises(IncorrectType, match="This is not a valid "):
        normalise(value, "f")


def test_a_polygon_is_closed_and_its_numbers_are_canonical():
    sent = {"__type": "Polygon", "coordinates": [[0, 0], [0.0, 1], [1, 1.5]]}
    stored = {"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [1, 1.5], [0, 0]]}
    assert normalise(sent, "f") == stored
    assert normalise(stored, "f") == stored


def test_bytes_and_files_keep_what_belongs_to_them():
    assert normalise({"__type": "Bytes", "base64": "aGk=", "x": 1}, "f") == {
        "__type": "Bytes",
        "base64": "aGk=",
    }
    file = normalise({"__type": "File", "name": "a.png", "url": "http://x/a.png", "x": 1}, "f")
    # Which url it has is the service's to say (tests/objects/files).
    assert set(file) == {"__type", "name", "url"}
    assert (file["__type"], file["name"]) == ("File", "a.png")


def test_a_relation_stands_only_as_the_value_of_a_field():
    relation = {"__type": "Relation", "className": "Game"}
    assert normalise(relation, "f") == relation
    with pytest.raises(IncorrectType):
        normalise([relation], "f")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, None),
        ("x", "String"),
        (1, "Number"),
        (1.5, "Number"),
        (True, "Boolean"),
        ({}, "Object"),
        ([], "Array"),
        (values.date("2020-01-01T00:00:00.000Z"), "Date"),
        ({"__type": "GeoPoint", "latitude": 1, "longitude": 1}, "GeoPoint"),
    ],
)
def test_every_value_has_a_kind(value, name):
    assert kind(value) == name


def test_equality_tells_booleans_from_numbers_and_compares_numbers_as_decimals():
    assert not equal(True, 1)
    assert not equal(0, False)
    assert equal(1, 1.0)
    assert equal(1e23, 10**23)
    assert not equal(10**22 + 1, 1e22)
    assert equal({"a": 1, "b": [2]}, {"b": [2.0], "a": 1})
    assert not equal({"a": None}, {})
    assert not equal([1], 1)


@given(json_values | st.dictionaries(st.just("__type"), st.text(max_size=5)))
def test_whatever_is_sent_is_kept_or_refused_with_an_error_that_clients_know(value):
    try:
        normalised = normalise(value, "f")
    except (IncorrectType, InvalidKeyName, InvalidNestedKey, InvalidJSON):
        return
    json.dumps(normalised, allow_nan=False).encode()


def test_angles_too_small_to_compute_with_are_zero():
    point = {"__type": "GeoPoint", "latitude": 5e-324, "longitude": -1e-200}
    assert normalise(point, "a") == {"__type": "GeoPoint", "latitude": 0, "longitude": 0}


def test_a_type_of_bson_is_shown_as_parse_shows_it():
    with pytest.raises(InvalidKeyName) as refused:
        normalise({"_bsontype": "Code"}, "f")
    assert refused.value.message == (
        'Prohibited keyword in request data: {"key":"_bsontype","value":"Code"}.'
    )
