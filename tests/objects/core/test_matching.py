"""What each constraint means, on objects in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from types import FrameType
from typing import Any

import pytest

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from objects.core.query.limits import MAX_ALL_VALUES
from objects.core.query.parser import parse_order, parse_where
from objects.core.query.predicate import matches, predicate, sorted_objects
from objects.core.query.tree import (
    Everything,
    Nothing,
    OneOfIds,
    ReadableBy,
    SubQuery,
    WritableBy,
    all_of,
)
from objects.core.values import pointer


def obj(**fields: Any) -> dict[str, Any]:
    stamps = {"createdAt": "2024-01-01T00:00:00.000Z", "updatedAt": "2024-01-02T00:00:00.000Z"}
    return {"objectId": "o1", **stamps, **fields}


def date(day: int) -> dict[str, Any]:
    return {"__type": "Date", "iso": f"2024-01-0{day}T00:00:00.000Z"}


def holds(where: dict[str, Any], **fields: Any) -> bool:
    return matches(parse_where(where), obj(**fields))


FILE = {"__type": "File", "name": "f"}


@pytest.mark.parametrize(
    ("where", "fields", "expected"),
    [
        # equality
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 2**70}, {"a": 2**70 + 1}, False),
        ({"a": 0.1}, {"a": 0.1}, True),
        ({"a": 1}, {}, False),
        ({"a": 1}, {"a": None}, False),
        ({"a": None}, {}, True),
        ({"a": None}, {"a": None}, True),
        ({"a": None}, {"a": [1, None]}, True),
        ({"a": None}, {"a": []}, False),
        ({"a": None}, {"a": 0}, False),
        ({"a": 1}, {"a": [3, 1]}, True),
        ({"a": 1}, {"a": [[1]]}, False),
        ({"a": [1, 2]}, {"a": [1, 2]}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": [1, 2]}, {"a": [[1, 2]]}, True),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, True),
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, False),
        ({"a": {"x": 1}}, {"a": [{"x": 1}]}, True),
        ({"a": pointer("T", "t1")}, {"a": pointer("T", "t1")}, True),
        ({"a": pointer("T", "t1")}, {"a": pointer("U", "t1")}, False),
        ({"a": FILE}, {"a": FILE | {"url": "http://any"}}, True),
        ({"a": {"$ne": 1}}, {}, True),
        ({"a": {"$ne": 1}}, {"a": [1, 2]}, False),
        ({"a": {"$ne": None}}, {}, False),
        # lists
        ({"a": {"$in": [1, None]}}, {}, True),
        ({"a": {"$in": []}}, {}, False),
        ({"a": {"$in": [2, "x"]}}, {"a": ["x"]}, True),
        ({"a": {"$nin": [1]}}, {}, True),
        ({"a": {"$nin": [1, None]}}, {}, False),
        ({"a": {"$nin": []}}, {"a": 1}, True),
        ({"a": {"$nin": [1]}}, {"a": [2, 1]}, False),
        ({"a": {"$all": [1, 2]}}, {"a": [2, 3, 1]}, True),
        ({"a": {"$all": [1, 4]}}, {"a": [2, 3, 1]}, False),
        ({"a": {"$all": []}}, {"a": []}, False),
        ({"a": {"$all": [1]}}, {"a": 1}, True),
        ({"a": {"$all": [{"$regex": "^x"}, {"$regex": "y$"}]}}, {"a": ["x1", "2y"]}, True),
        ({"a": {"$all": [{"$regex": "^x"}, {"$regex": "y$"}]}}, {"a": ["x1"]}, False),
        ({"a": {"$containedBy": [1, 2, 3]}}, {"a": [3, 1, 1]}, True),
        ({"a": {"$containedBy": [1, 2, 3]}}, {"a": [3, 4]}, False),
        ({"a": {"$containedBy": [1]}}, {"a": []}, True),
        ({"a": {"$containedBy": [1]}}, {"a": 1}, False),
        ({"a": {"$containedBy": [1]}}, {}, False),
        # comparison
        ({"a": {"$gt": 1}}, {"a": 2}, True),
        ({"a": {"$gt": 1}}, {"a": "2"}, False),
        ({"a": {"$gt": 0}}, {"a": True}, False),
        ({"a": {"$gt": 2**53}}, {"a": 2**53 + 1}, True),
        ({"a": {"$gt": 0.1}}, {"a": 0.30000000000000004}, True),
        ({"a": {"$lt": 1}}, {}, False),
        ({"a": {"$lt": 1}}, {"a": None}, False),
        ({"a": {"$lt": 2}}, {"a": [5, 1]}, True),
        ({"a": {"$gt": "Z"}}, {"a": "a"}, True),
        ({"a": {"$gt": "\uffff"}}, {"a": "\U0001f600"}, True),
        ({"a": {"$gte": date(2)}}, {"a": date(2)}, True),
        ({"a": {"$gt": "2024"}}, {"a": date(2)}, False),
        ({"a": {"$lte": False}}, {"a": False}, True),
        ({"a": {"$gt": False}}, {"a": True}, True),
        ({"createdAt": {"$lt": "2024-01-01T00:00:00.001Z"}}, {}, True),
        ({"createdAt": date(1)}, {}, True),
        ({"updatedAt": {"$in": [date(1), date(2)]}}, {}, True),
        ({"objectId": {"$in": ["o1"]}}, {}, True),
        # existence
        ({"a": {"$exists": True}}, {"a": []}, True),
        ({"a": {"$exists": True}}, {"a": None}, False),
        ({"a": {"$exists": False}}, {"a": None}, True),
        ({"a.b": {"$exists": True}}, {"a": {"b": 0}}, True),
        ({"a.b": {"$exists": False}}, {"a": {"c": 0}}, True),
        # paths
        ({"a.b": 1}, {"a": {"b": 1}}, True),
        ({"a.b": 1}, {"a": [{"b": 2}, {"b": 1}]}, True),
        ({"a.b": 1}, {"a": [[{"b": 1}]]}, False),
        ({"a.b.c": 1}, {"a": [{"b": [{"c": [0, 1]}]}]}, True),
        ({"a.0": 1}, {"a": [1, 2]}, True),
        ({"a.0": 2}, {"a": [1, 2]}, False),
        ({"a.0": 1}, {"a": {"0": 1}}, True),
        ({"a.0.b": 1}, {"a": [{"b": 1}]}, True),
        ({"a.b.0": 1}, {"a": [{"b": [1]}]}, False),
        ({"a.7": None}, {"a": [1]}, True),
        ({"a.objectId": "t1"}, {"a": pointer("T", "t1")}, True),
        ({"a.b": None}, {"a": 5}, True),
        # patterns
        ({"a": {"$regex": "^\\Qx.\\E"}}, {"a": "x.y"}, True),
        ({"a": {"$regex": "X", "$options": "i"}}, {"a": ["b", "x"]}, True),
        ({"a": {"$regex": "1"}}, {"a": 1}, False),
        ({"a": {"$regex": "x"}}, {}, False),
        # logic
        ({"$or": [{"a": 1}, {"b": 1}]}, {"b": 1}, True),
        ({"$or": [{"a": 1}, {"b": 1}]}, {}, False),
        ({"$and": [{"a": 1}, {"b": 1}]}, {"b": 1}, False),
        ({"$nor": [{"a": 1}, {"b": 1}]}, {"a": 2}, True),
        ({"$nor": [{"a": 1}, {"b": 1}]}, {"b": 1}, False),
        ({"a": {"$gt": 1, "$lt": 3}}, {"a": 2}, True),
        # Each constraint may be met by an element of its own, as in MongoDB.
        ({"a": {"$gt": 4, "$lt": 2}}, {"a": [1, 5]}, True),
    ],
)
def test_an_object_is_found_or_not(where, fields, expected):
    assert holds(where, **fields) is expected


class Known:
    """A lookup over a few objects."""

    def __init__(self, results: Sequence[dict[str, Any]], members: Mapping[Any, Any]) -> None:
        self._found, self._members = results, members

    def find(self, query: SubQuery) -> Sequence[dict[str, Any]]:
        holds = predicate(query.where)
        return [item for item in self._found if holds(item)]

    def members(self, class_name: str | None, object_id: str, key: str) -> Collection[Json]:
        return self._members.get((class_name, object_id, key), ())


TEAMS = Known(
    [
        {"objectId": "t1", "wins": 5, "city": "Rome", "tags": ["a", "b"]},
        {"objectId": "t2", "wins": 1, "city": None},
    ],
    {
        (None, "o1", "fans"): [pointer("Fan", "f1"), pointer("Fan", "f2")],
        ("Club", "c1", "players"): [pointer("Player", "o1")],
    },
)
WINNERS = {"className": "Team", "where": {"wins": {"$gt": 3}}}
FANS = {"__type": "Relation", "className": "Fan"}


@pytest.mark.parametrize(
    ("where", "fields", "expected"),
    [
        ({"a": {"$inQuery": WINNERS}}, {"a": pointer("Team", "t1")}, True),
        ({"a": {"$inQuery": WINNERS}}, {"a": pointer("Team", "t2")}, False),
        ({"a": {"$inQuery": WINNERS}}, {"a": pointer("Other", "t1")}, False),
        ({"a": {"$inQuery": WINNERS}}, {"a": [1, pointer("Team", "t1")]}, True),
        ({"a": {"$notInQuery": WINNERS}}, {}, True),
        ({"a": {"$notInQuery": WINNERS}}, {"a": pointer("Team", "t1")}, False),
        ({"a": {"$select": {"query": WINNERS, "key": "city"}}}, {"a": "Rome"}, True),
        ({"a": {"$select": {"query": WINNERS, "key": "tags.1"}}}, {"a": ["b"]}, True),
        ({"a": {"$select": {"query": WINNERS, "key": "tags"}}}, {"a": ["a", "b"]}, True),
        ({"a": {"$select": {"query": WINNERS, "key": "city"}}}, {"a": None}, False),
        (
            {"a": {"$select": {"query": {"className": "Team"}, "key": "city"}}},
            {"a": None},
            False,
        ),
        ({"a": {"$dontSelect": {"query": WINNERS, "key": "city"}}}, {}, True),
        ({"fans": pointer("Fan", "f2")}, {"fans": FANS}, True),
        ({"fans": pointer("Fan", "f3")}, {"fans": FANS}, False),
        ({"fans": {"$ne": pointer("Fan", "f2")}}, {"fans": FANS}, False),
        ({"fans": {"$all": [pointer("Fan", "f2"), pointer("Fan", "f1")]}}, {"fans": FANS}, True),
        ({"fans": {"$exists": True}}, {"fans": FANS}, True),
        ({"likes": {"$exists": True}}, {"likes": FANS}, False),
        ({"likes": None}, {"likes": FANS}, False),
        ({"$relatedTo": {"object": pointer("Club", "c1"), "key": "players"}}, {}, True),
        ({"$relatedTo": {"object": pointer("Club", "c2"), "key": "players"}}, {}, False),
    ],
)
def test_other_objects_are_looked_up(where, fields, expected):
    assert matches(parse_where(where), obj(**fields), TEAMS, "Player") is expected


def test_the_members_of_a_relation_are_of_one_class():
    where = {"$relatedTo": {"object": pointer("Club", "c1"), "key": "players"}}
    assert not matches(parse_where(where), obj(), TEAMS, "Trainer")
    assert not matches(parse_where(where), obj(), TEAMS)


def test_without_a_lookup_other_classes_are_empty():
    assert not holds({"a": {"$inQuery": WINNERS}}, a=pointer("Team", "t1"))


@pytest.mark.parametrize(
    ("acl", "ids", "reads", "writes"),
    [
        (None, [], True, True),
        ({}, ["*", "u1"], False, False),
        ({"*": {"read": True}}, ["*"], True, False),
        ({"u1": {"read": True, "write": True}}, ["*", "u1"], True, True),
        ({"role:x": {"write": True}}, ["*", "role:x"], False, True),
        ({"u2": {"read": True}}, ["*", "u1"], False, False),
    ],
)
def test_an_acl_says_who_finds_an_object(acl, ids, reads, writes):
    item = obj() if acl is None else obj(ACL=acl)
    assert matches(ReadableBy(frozenset(ids)), item) is reads
    assert matches(WritableBy(frozenset(ids)), item) is writes


def test_ids_everything_and_nothing():
    assert matches(OneOfIds(frozenset({"o1"})), obj())
    assert not matches(OneOfIds(frozenset()), obj())
    assert matches(Everything(), obj())
    assert not matches(Nothing(), obj())
    assert all_of(Everything(), Nothing()) == Nothing()


def test_text_with_stemming_is_left_to_the_database():
    stemmed = parse_where({"a": {"$text": {"$search": {"$term": "x"}}}})
    with pytest.raises(InvalidQuery):
        predicate(stemmed)


def in_order(order: str, *values: Any) -> list[str]:
    objects = []
    for number, value in enumerate(values):
        item = {"objectId": f"o{number}"}
        objects.append(item if value is MISSING else item | {"a": value})
    return [item["objectId"] for item in sorted_objects(objects, parse_order(order))]


MISSING = object()


def test_missing_is_first_when_ascending_and_last_when_descending():
    assert in_order("a", 2, MISSING, 1, None) == ["o1", "o3", "o2", "o0"]
    assert in_order("-a", 2, MISSING, 1, None) == ["o0", "o2", "o3", "o1"]


def test_kinds_are_sorted_as_mongodb_sorts_them():
    values = [date(1), True, [1], {"x": 1}, "x", 5, None]
    assert in_order("a", *values) == ["o6", "o5", "o4", "o3", "o2", "o1", "o0"]


def test_strings_are_sorted_by_code_point_and_numbers_exactly():
    assert in_order("a", "é", "Z", "a", "\U0001f600", "\uffff") == ["o1", "o2", "o0", "o4", "o3"]
    assert in_order("a", 2**70, 2**53 + 1, 2**53, 0.1) == ["o3", "o2", "o1", "o0"]


def test_the_object_id_decides_last_in_the_direction_of_the_last_key():
    assert in_order("a", 1, 1, 0) == ["o2", "o0", "o1"]
    assert in_order("-a", 1, 1, 0) == ["o1", "o0", "o2"]
    assert in_order("", 1, 0) == ["o0", "o1"]
    assert in_order("-objectId", 1, 0) == ["o1", "o0"]


def test_a_path_of_several_steps_sorts_exactly():
    assert in_order("a.b", {"b": 2}, {"b": 1}, [{"b": 0}]) == ["o2", "o1", "o0"]
    assert in_order("a.0", [2], [1], {"0": 0}) == ["o2", "o1", "o0"]


def test_the_nearest_come_first_unless_an_order_is_requested():
    def place(latitude: float) -> dict[str, Any]:
        return {"__type": "GeoPoint", "latitude": latitude, "longitude": 0}

    objects = [obj(a=place(5)) | {"objectId": "far"}, obj(a=place(1)) | {"objectId": "near"}]
    query = parse_where({"a": {"$nearSphere": place(0)}})
    assert [sorted_object["objectId"] for sorted_object in sorted_objects(objects, (), query)] == [
        "near",
        "far",
    ]
    ordered = sorted_objects(objects, parse_order("objectId"), query)
    assert [sorted_object["objectId"] for sorted_object in ordered] == ["far", "near"]


class Compared(dict[str, Json]):
    """An object in a list. Its comparisons are calls, which can be counted."""

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)


def calls_in(action: Callable[[], object]) -> int:
    """How many functions written in Python it calls."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("constraint", ["$in", "$nin", "$all", "$containedBy"])
def test_long_lists_are_compared_without_taking_the_product_of_their_lengths(
    constraint: str,
) -> None:
    """Live queries are matched between everybody's messages."""

    def calls_with(size: int) -> int:
        values: list[Json] = [{"n": number} for number in range(size)]
        results = predicate(parse_where({"a": {constraint: values}}))
        long_one = obj(a=[Compared(n=number) for number in reversed(range(size))])
        none_of = predicate(parse_where({"a": {"$in": [-1, *values]}}))
        same = obj(a=[Compared(n=-1) for _ in range(size)])
        assert results(long_one) is (constraint != "$nin")
        assert not none_of(same)
        return calls_in(lambda: (results(long_one), none_of(same)))

    assert calls_with(MAX_ALL_VALUES) < 2.5 * calls_with(MAX_ALL_VALUES // 2)
