"""One row per operator and type, on a few objects, however they are stored."""

from __future__ import annotations

from typing import Any

import pytest

from backend.kernel.errors import InvalidJSON
from objects.core.query.parser import parse_order, parse_where
from objects.core.values import pointer
from tests.objects.sql.world import OTHER, THINGS, World, friends, ids, pointers_to_others, thing


def date(day: int) -> dict[str, Any]:
    return {"__type": "Date", "iso": f"2024-01-0{day}T00:00:00.000Z"}


def place(latitude: float, longitude: float) -> dict[str, Any]:
    return {"__type": "GeoPoint", "latitude": latitude, "longitude": longitude}


def file(name: str, **url: str) -> dict[str, Any]:
    return {"__type": "File", "name": name, **url}


SQUARE = {"__type": "Polygon", "coordinates": [[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]}
TURNED = {"__type": "Polygon", "coordinates": [[0, 10], [10, 10], [10, 0], [0, 0], [0, 10]]}
BYTES = {"__type": "Bytes", "base64": "YQ=="}
LIKES = {"__type": "Relation", "className": "Other"}

FULL = thing(
    "full",
    name="Anna",
    title="The old Map",
    score=7,
    count=2**53 + 1,
    flag=True,
    when=date(2),
    owner=pointer("Other", "o1"),
    place=place(5, 5),
    area=SQUARE,
    blob=BYTES,
    file=file("a.png", url="http://h/a.png"),
    tags=["red", 1, None, {"a": 1}, [2]],
    info={"a": {"b": [{"c": 1}, {"c": 2}]}, "n": None, "x.y": 1},
    likes=LIKES,
)
HALF = thing(
    "half",
    name="Bert",
    title="a new map",
    score=0.5,
    count=3,
    flag=False,
    when=date(4),
    owner=pointer("Other", "o2"),
    place=place(50, 60),
    tags=[],
    info={"a": 5},
    likes=LIKES,
)
NULL = thing(
    "null",
    **dict.fromkeys(("name", "score", "count", "flag", "when", "owner", "place", "tags", "info")),
    likes=LIKES,
)
BARE = thing("bare", likes=LIKES)
OBJECTS = [FULL, HALF, NULL, BARE]
ALL = {"full", "half", "null", "bare"}
OTHERS = [
    thing("o1", name="Anna", score=1, tags=["red", "blue"]),
    thing("o2", name=None, score=2),
    thing("o3", name="Carl", score=3),
]


@pytest.fixture
def filled(world: World) -> World:
    world.fill(
        OBJECTS,
        OTHERS,
        {
            ("full", "likes"): pointers_to_others("o1", "o2"),
            ("bare", "likes"): pointers_to_others("o3"),
        },
    )
    return world


def sub(**where: Any) -> dict[str, Any]:
    return {"className": "Other", "where": where}


def related(owner: str, key: str = "friends") -> dict[str, Any]:
    return {"$relatedTo": {"object": pointer("Thing", owner), "key": key}}


CASES: list[tuple[dict[str, Any], set[str]]] = [
    # equality, by kind
    ({"name": "Anna"}, {"full"}),
    ({"name": "anna"}, set()),
    ({"name": 5}, set()),
    ({"score": 7}, {"full"}),
    ({"score": 7.0}, {"full"}),
    ({"score": 0.5}, {"half"}),
    ({"score": "7"}, set()),
    ({"count": 2**53 + 1}, {"full"}),
    ({"count": 2**53}, set()),
    ({"count": 2**80}, set()),
    ({"count": 3.5}, set()),
    ({"flag": True}, {"full"}),
    ({"flag": False}, {"half"}),
    ({"flag": 1}, set()),
    ({"when": date(2)}, {"full"}),
    ({"when": date(2)["iso"]}, set()),
    ({"owner": pointer("Other", "o1")}, {"full"}),
    ({"owner": pointer("Thing", "o1")}, set()),
    ({"place": place(5, 5)}, {"full"}),
    ({"area": SQUARE}, {"full"}),
    ({"area": TURNED}, set()),
    ({"blob": BYTES}, {"full"}),
    ({"file": file("a.png")}, {"full"}),
    ({"file": file("a.png", url="http://elsewhere/a.png")}, {"full"}),
    ({"tags": "red"}, {"full"}),
    ({"tags": 1}, {"full"}),
    ({"tags": {"a": 1}}, {"full"}),
    ({"tags": {"a": 1, "b": 2}}, set()),
    ({"tags": [2]}, {"full"}),
    ({"tags": 2}, set()),
    ({"tags": []}, {"half"}),
    ({"tags": ["red", 1, None, {"a": 1}, [2]]}, {"full"}),
    ({"tags": ["red", 1]}, set()),
    ({"info": {"a": 5}}, {"half"}),
    ({"info": {"a": {"b": [{"c": 1}, {"c": 2}]}}}, set()),
    ({"info.a": 5}, {"half"}),
    ({"info.a.b.c": 2}, {"full"}),
    ({"info.a.b.1.c": 2}, {"full"}),
    ({"info.a.b.0.c": 2}, set()),
    ({"info.a.b": {"c": 1}}, {"full"}),
    ({"owner.objectId": "o2"}, {"half"}),
    ({"tags.a": 1}, {"full"}),
    ({"tags.0": "red"}, {"full"}),
    ({"objectId": "half"}, {"half"}),
    ({"createdAt": "2024-01-01"}, ALL),
    ({"unknown": 1}, set()),
    ({"unknown.a": 1}, set()),
    # an id for a pointer
    ({"owner": "o1"}, {"full"}),
    ({"owner": {"$ne": "o1"}}, {"half", "null", "bare"}),
    ({"owner": {"$in": ["o1", "o2"]}}, {"full", "half"}),
    ({"owner": {"$in": ["o2", None]}}, {"half", "null", "bare"}),
    ({"owner": {"$nin": ["o1"]}}, {"half", "null", "bare"}),
    ({"owner": {"$all": ["o1"]}}, {"full"}),
    ({"owner": {"$gt": "a"}}, set()),
    ({"owner": {"$select": {"query": sub(score=2), "key": "objectId"}}}, {"half"}),
    ({"owner": {"$dontSelect": {"query": sub(), "key": "objectId"}}}, {"null", "bare"}),
    # null
    ({"name": None}, {"null", "bare"}),
    ({"score": None}, {"null", "bare"}),
    ({"flag": None}, {"null", "bare"}),
    ({"when": None}, {"null", "bare"}),
    ({"owner": None}, {"null", "bare"}),
    ({"area": None}, {"half", "null", "bare"}),
    ({"tags": None}, {"full", "null", "bare"}),
    ({"info": None}, {"null", "bare"}),
    ({"info.n": None}, ALL),
    ({"info.a": None}, {"null", "bare"}),
    ({"unknown": None}, ALL),
    ({"objectId": None}, set()),
    # not equal
    ({"name": {"$ne": "Anna"}}, {"half", "null", "bare"}),
    ({"name": {"$ne": None}}, {"full", "half"}),
    ({"score": {"$ne": 7}}, {"half", "null", "bare"}),
    ({"tags": {"$ne": "red"}}, {"half", "null", "bare"}),
    ({"info.a": {"$ne": 5}}, {"full", "null", "bare"}),
    ({"unknown": {"$ne": 1}}, ALL),
    # comparison
    ({"name": {"$gt": "Anna"}}, {"half"}),
    ({"name": {"$gte": "Anna"}}, {"full", "half"}),
    ({"name": {"$lt": "a"}}, {"full", "half"}),
    ({"name": {"$gt": 0}}, set()),
    ({"score": {"$gt": 0.5}}, {"full"}),
    ({"score": {"$gte": 0.5, "$lt": 7}}, {"half"}),
    ({"score": {"$lt": 10**40}}, {"full", "half"}),
    ({"count": {"$gt": 2**53}}, {"full"}),
    ({"count": {"$gt": 2.5}}, {"full", "half"}),
    ({"count": {"$lt": 10**40}}, {"full", "half"}),
    ({"flag": {"$gt": False}}, {"full"}),
    ({"flag": {"$lte": True}}, {"full", "half"}),
    ({"when": {"$gt": date(2)}}, {"half"}),
    ({"when": {"$lte": {"$relativeTime": "1 day ago"}}}, {"full", "half"}),
    ({"when": {"$gt": "2024"}}, set()),
    ({"createdAt": {"$gte": "2024-01-01"}}, ALL),
    ({"createdAt": {"$lt": date(1)}}, set()),
    ({"objectId": {"$lt": "full"}}, {"bare"}),
    ({"tags": {"$gte": 1}}, {"full"}),
    ({"tags": {"$gt": "r"}}, {"full"}),
    ({"tags": {"$gt": 1}}, set()),
    ({"info.a": {"$gt": 4}}, {"half"}),
    ({"info.a.b.c": {"$gt": 1}}, {"full"}),
    ({"owner.objectId": {"$gt": "o1"}}, {"half"}),
    # lists
    ({"name": {"$in": ["Anna", None, 5]}}, {"full", "null", "bare"}),
    ({"name": {"$in": []}}, set()),
    ({"name": {"$nin": ["Anna"]}}, {"half", "null", "bare"}),
    ({"name": {"$nin": ["Anna", None]}}, {"half"}),
    ({"name": {"$nin": []}}, ALL),
    ({"score": {"$in": [7, 0.5, "x"]}}, {"full", "half"}),
    ({"count": {"$in": [3, 2**90, 1.5]}}, {"half"}),
    ({"flag": {"$in": [True, False]}}, {"full", "half"}),
    ({"when": {"$in": [date(2), date(3)]}}, {"full"}),
    ({"owner": {"$in": pointers_to_others("o1", "o3")}}, {"full"}),
    ({"file": {"$in": [file("a.png"), file("b.png")]}}, {"full"}),
    ({"place": {"$in": [place(5, 5), place(1, 1)]}}, {"full"}),
    ({"area": {"$in": [SQUARE, TURNED]}}, {"full"}),
    ({"tags": {"$in": ["blue", {"a": 1}]}}, {"full"}),
    ({"tags": {"$nin": ["blue", None]}}, {"half"}),
    ({"info.a": {"$in": [5, {"b": []}]}}, {"half"}),
    ({"info": {"$in": [{"a": 5}]}}, {"half"}),
    ({"objectId": {"$in": ["full", "bare", 5]}}, {"full", "bare"}),
    ({"name": {"$in": [f"x{n}" for n in range(3000)] + ["Bert"]}}, {"half"}),
    ({"tags": {"$in": [f"x{n}" for n in range(3000)] + ["red"]}}, {"full"}),
    ({"tags": {"$all": ["red", 1]}}, {"full"}),
    ({"tags": {"$all": ["red", {"a": 1}]}}, {"full"}),
    ({"tags": {"$all": [[2]]}}, {"full"}),
    ({"tags": {"$all": [2]}}, set()),
    ({"tags": {"$all": [{"$unknown": "x"}]}}, set()),
    ({"tags": {"$in": [["blue", "red"]]}}, {"full"}),
    ({"tags": {"$nin": [["blue", "red"]]}}, {"half", "null", "bare"}),
    ({"name": {"$in": [["Anna"], "Bert"]}}, {"full", "half"}),
    ({"tags": {"$all": []}}, set()),
    ({"name": {"$all": ["Anna"]}}, {"full"}),
    ({"tags": {"$all": [{"$regex": "^r"}]}}, {"full"}),
    ({"tags": {"$all": [{"$regex": "^r"}, {"$regex": "x"}]}}, set()),
    ({"tags": {"$containedBy": ["red", 1, None, {"a": 1}, [2], "more"]}}, {"full", "half"}),
    ({"tags": {"$containedBy": ["red"]}}, {"half"}),
    ({"tags": {"$containedBy": []}}, {"half"}),
    ({"info.a.b": {"$containedBy": [{"c": 1}, {"c": 2}]}}, {"full"}),
    ({"name": {"$containedBy": ["Anna"]}}, set()),
    # existence
    ({"name": {"$exists": True}}, {"full", "half"}),
    ({"name": {"$exists": False}}, {"null", "bare"}),
    ({"area": {"$exists": True}}, {"full"}),
    ({"tags": {"$exists": True}}, {"full", "half"}),
    ({"info.a": {"$exists": True}}, {"full", "half"}),
    ({"info.n": {"$exists": True}}, set()),
    ({"info.a.b": {"$exists": False}}, {"half", "null", "bare"}),
    ({"info.a.b.5": {"$exists": True}}, set()),
    ({"objectId": {"$exists": True}}, ALL),
    ({"unknown": {"$exists": False}}, ALL),
    # patterns
    ({"name": {"$regex": "^An"}}, {"full"}),
    ({"name": {"$regex": "^\\QBe\\E"}}, {"half"}),
    ({"name": {"$regex": "N{2}", "$options": "i"}}, {"full"}),
    ({"name": {"$regex": "t$"}}, {"half"}),
    ({"name": {"$regex": "er"}}, {"half"}),
    ({"name": {"$regex": ""}}, {"full", "half"}),
    ({"tags": {"$regex": "e"}}, {"full"}),
    ({"score": {"$regex": "7"}}, set()),
    ({"objectId": {"$regex": "^[bn]"}}, {"bare", "null"}),
    ({"createdAt": {"$regex": "2024"}}, set()),
    ({"title": {"$regex": "map", "$options": "i"}, "name": {"$ne": "Bert"}}, {"full"}),
    # places
    ({"place": {"$nearSphere": place(0, 0)}}, {"full", "half"}),
    ({"place": {"$nearSphere": place(0, 0), "$maxDistanceInKilometers": 1000}}, {"full"}),
    ({"place": {"$nearSphere": place(0, 0), "$maxDistanceInMiles": 400}}, set()),
    ({"place": {"$nearSphere": place(0, 0), "$maxDistance": 2}}, {"full", "half"}),
    ({"place": {"$within": {"$box": [place(0, 0), place(10, 10)]}}}, {"full"}),
    ({"place": {"$within": {"$box": [place(40, 50), place(60, -170)]}}}, {"half"}),
    ({"place": {"$within": {"$box": [place(10, 10), place(0, 0)]}}}, {"full"}),
    ({"place": {"$within": {"$box": [place(10, 0), place(0, 10)]}}}, {"full"}),
    ({"place": {"$within": {"$box": [place(0, 10), place(10, 0)]}}}, set()),
    ({"place": {"$geoWithin": {"$polygon": SQUARE}}}, {"full"}),
    ({"place": {"$geoWithin": {"$polygon": [[0, 0], [4, 0], [4, 4]]}}}, set()),
    ({"place": {"$geoWithin": {"$centerSphere": [[60, 50], 0.1]}}}, {"half"}),
    ({"area": {"$geoIntersects": {"$point": place(10, 5)}}}, {"full"}),
    ({"area": {"$geoIntersects": {"$point": place(11, 5)}}}, set()),
    ({"name": {"$nearSphere": place(0, 0)}}, set()),
    # other classes
    ({"owner": {"$inQuery": sub(score=1)}}, {"full"}),
    ({"owner": {"$inQuery": sub()}}, {"full", "half"}),
    ({"owner": {"$inQuery": sub() | {"order": "-score", "limit": 2}}}, {"half"}),
    ({"owner": {"$inQuery": {"className": "Missing"}}}, set()),
    ({"owner": {"$inQuery": sub(owner={"$inQuery": sub()})}}, set()),
    ({"owner": {"$notInQuery": sub(score=1)}}, {"half", "null", "bare"}),
    ({"owner": {"$notInQuery": {"className": "Missing"}}}, ALL),
    ({"name": {"$select": {"query": sub(), "key": "name"}}}, {"full"}),
    ({"tags": {"$select": {"query": sub(), "key": "tags.0"}}}, {"full"}),
    ({"tags": {"$select": {"query": sub(), "key": "tags"}}}, {"full"}),
    ({"tags": {"$dontSelect": {"query": sub(), "key": "tags"}}}, {"half", "null", "bare"}),
    ({"name": {"$dontSelect": {"query": sub(), "key": "name"}}}, {"half", "null", "bare"}),
    ({"owner.objectId": {"$select": {"query": sub(score=2), "key": "objectId"}}}, {"half"}),
    # relations
    ({"likes": pointer("Other", "o1")}, {"full"}),
    ({"likes": pointer("Thing", "o1")}, set()),
    ({"likes": {"$in": pointers_to_others("o1", "o3")}}, {"full", "bare"}),
    ({"likes": {"$ne": pointer("Other", "o3")}}, {"full", "half", "null"}),
    ({"likes": {"$nin": pointers_to_others("o1", "o3")}}, {"half", "null"}),
    ({"likes": {"$all": pointers_to_others("o1", "o2")}}, {"full"}),
    ({"likes": {"$exists": True}}, {"full", "bare"}),
    ({"likes": None}, set()),
    ({"likes": {"$ne": None}}, ALL),
    ({"likes": {"$in": [None, *pointers_to_others("o3")]}}, {"bare"}),
    ({"likes": "o1"}, set()),
    ({"likes": {"$inQuery": sub(score=3)}}, {"bare"}),
    ({"likes": {"$notInQuery": sub(score=3)}}, {"full", "half", "null"}),
    ({"likes": {"$containedBy": pointers_to_others("o3", "o4")}}, {"bare"}),
    (related("nobody"), set()),
    ({"$relatedTo": {"object": {"__type": "Pointer", "className": "Thing"}, "key": "a"}}, set()),
    ({"$relatedTo": {"object": pointer("Missing", "o1"), "key": "friends"}}, set()),
    # logic
    ({"$or": [{"score": 7}, {"name": "Bert"}]}, {"full", "half"}),
    ({"$and": [{"score": 7}, {"name": "Bert"}]}, set()),
    ({"$nor": [{"score": 7}, {"name": "Bert"}]}, {"null", "bare"}),
    ({"$nor": [{"score": {"$gt": 100}}]}, ALL),
    ({"$or": [{}]}, ALL),
    ({"$nor": [{}]}, set()),
]


@pytest.mark.parametrize("stored", THINGS)
@pytest.mark.parametrize(("where", "expected"), CASES)
def test_a_constraint_finds(filled: World, stored, where, expected):
    query = parse_where(where)
    assert set(filled.in_sql(query, THINGS[stored])) == expected
    assert set(ids(filled.in_memory(query))) == expected


def test_members_of_a_relation_are_found(world: World):
    related_things = {("full", "friends"): friends("o1", "o2")}
    world.fill([FULL, thing("o1"), thing("o2")], (), related_things)
    assert world.in_sql(parse_where(related("full"))) == ["o1", "o2"]
    assert world.in_sql(parse_where(related("full", "other"))) == []
    assert world.in_sql(parse_where(related("full")), OTHER) == []
    assert world.in_sql(parse_where({**related("full"), "objectId": "o2"})) == ["o2"]


@pytest.mark.parametrize("stored", THINGS)
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("name", ["bare", "null", "full", "half"]),
        ("-name", ["half", "full", "null", "bare"]),
        ("-score", ["full", "half", "null", "bare"]),
        ("score,-objectId", ["null", "bare", "half", "full"]),
        ("flag,objectId", ["bare", "null", "half", "full"]),
        ("-when", ["half", "full", "null", "bare"]),
        ("owner", ["bare", "null", "full", "half"]),
        ("tags", ["bare", "null", "full", "half"]),
        ("info.a", ["bare", "null", "half", "full"]),
        ("createdAt", ["bare", "full", "half", "null"]),
        ("-createdAt", ["null", "half", "full", "bare"]),
        ("unknown,objectId", ["bare", "full", "half", "null"]),
        ("$score,-objectId", ["null", "half", "full", "bare"]),
    ],
)
def test_an_order_sorts(filled: World, stored, order, expected):
    keys = parse_order(order)
    everything = parse_where(None)
    assert filled.in_sql(everything, THINGS[stored], keys) == expected
    assert ids(filled.in_memory(everything, order=keys)) == expected


@pytest.mark.parametrize("stored", THINGS)
@pytest.mark.parametrize("field", ["name", "score", "owner", "tags", "info", "objectId"])
def test_a_relative_time_is_for_dates(filled: World, stored, field):
    query = parse_where({field: {"$gt": {"$relativeTime": "1 day ago"}}})
    with pytest.raises(InvalidJSON, match=r"^\$relativeTime can only be used with Date field$"):
        filled.in_sql(query, THINGS[stored])


def test_a_relative_time_of_an_unknown_or_inner_key_is_compared(filled: World):
    for field in ("unknown", "info.when"):
        query = parse_where({field: {"$gt": {"$relativeTime": "1 day ago"}}})
        assert filled.in_sql(query) == []
