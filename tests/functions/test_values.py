"""Values in Python code and on the wire."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.errors import InvalidJSON
from functions.runtime.values import (
    UNSET,
    File,
    GeoPoint,
    Object,
    Pointer,
    Polygon,
    Relation,
    add,
    add_relation,
    add_unique,
    decode,
    encode,
    increment,
    remove,
    remove_relation,
)
from objects.core.values import normalise

_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
_DEGREES = st.integers(-90, 90)
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**300), 2**300)
    | st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)
    | st.builds(Pointer, _NAMES, st.from_regex(r"[A-Za-z0-9]{10}", fullmatch=True))
    | st.builds(GeoPoint, _DEGREES, _DEGREES)
    | st.binary(max_size=8)
    | st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=10,
)


@given(_VALUES)
def test_what_is_encoded_and_decoded_is_the_same(value: Any) -> None:
    assert decode(encode(value)) == value


@given(_VALUES)
def test_what_is_encoded_is_a_value_for_the_store(value: Any) -> None:
    wire = encode(value)
    assert normalise(wire, "value") == wire


def test_polygons_files_and_relations_come_back() -> None:
    for value in (
        Polygon([(0, 0), (0, 1), (1, 1)]),
        File("a.txt", "http://x/a.txt"),
        Relation("_User"),
    ):
        assert decode(encode(value)) == value


@pytest.mark.parametrize(
    "wire",
    [
        {"__type": "Date"},
        {"__type": "Date", "iso": 5},
        {"__type": "Date", "iso": "x"},
        {"__type": "Pointer", "className": "A"},
        {"__type": "Pointer", "className": 1, "objectId": "a"},
        {"__type": "GeoPoint", "latitude": "x", "longitude": 1},
        {"__type": "Bytes", "base64": "?"},
        {"__type": "Polygon", "coordinates": 5},
        {"__type": "Something"},
        {"__type": ["Date"]},
    ],
)
def test_what_does_not_fit_its_type_stays_what_it_is(wire: dict[str, Any]) -> None:
    assert decode(wire) == wire


def test_an_object_is_whole_in_a_result_and_a_pointer_in_a_field() -> None:
    user = Object("_User", {"objectId": "a", "name": "Ann"})
    assert encode(user) == {
        "__type": "Object",
        "className": "_User",
        "objectId": "a",
        "name": "Ann",
    }
    assert encode({"owner": user}, as_field=True) == {
        "owner": {"__type": "Pointer", "className": "_User", "objectId": "a"}
    }


def test_an_object_that_is_not_stored_has_no_pointer() -> None:
    with pytest.raises(ValueError, match="isn't stored yet"):
        Object("Project").pointer()


def test_operators_are_their_wire_form() -> None:
    ann = Object("_User", {"objectId": "a"})
    pointer = {"__type": "Pointer", "className": "_User", "objectId": "a"}
    assert encode(
        {
            "a": increment(),
            "b": add(1, ann),
            "c": add_unique("x"),
            "d": remove("x"),
            "e": add_relation(ann),
            "f": remove_relation(ann),
            "g": UNSET,
        },
        as_field=True,
    ) == {
        "a": {"__op": "Increment", "amount": 1},
        "b": {"__op": "Add", "objects": [1, pointer]},
        "c": {"__op": "AddUnique", "objects": ["x"]},
        "d": {"__op": "Remove", "objects": ["x"]},
        "e": {"__op": "AddRelation", "objects": [pointer]},
        "f": {"__op": "RemoveRelation", "objects": [pointer]},
        "g": {"__op": "Delete"},
    }


class _Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (_Colour.RED, "red"),
        (Decimal("1.50"), "1.50"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ((1, {2}), [1, [2]]),
        (datetime(2026, 1, 1, tzinfo=UTC).date(), "2026-01-01"),
    ],
)
def test_values_of_the_standard_library_are_understood(value: Any, wire: Any) -> None:
    assert encode(value) == wire


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, datetime(2026, 1, 1), lambda: None],  # noqa: DTZ001
)
def test_what_json_cannot_say_is_an_error(value: Any) -> None:
    with pytest.raises(InvalidJSON):
        encode(value)


def test_a_value_within_itself_is_an_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidJSON, match="levels deep"):
        encode(endless)
