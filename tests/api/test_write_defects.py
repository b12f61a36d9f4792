"""What writes of Parse Server on PostgreSQL get wrong, done right: 4xx, and nothing stored."""

from __future__ import annotations

import random

import pytest

from tests.rest import MASTER, Api


@pytest.fixture
def game(master):
    return master.make(
        "Game", score=5, name="chess", list=[1, 2], place={"x": 1}, when=date("2020-01-01")
    )


def date(iso):
    return {"__type": "Date", "iso": f"{iso}T00:00:00.000Z"}


def op(name, **operands):
    return {"__op": name, **operands}


def nested(levels):
    value = {"end": 1}
    for _ in range(levels):
        value = {"a": value}
    return value


# Field, value, code: refused both in a POST and in a PUT.
REFUSED = [
    # Update operators
    ("score", op("Increment"), 107),
    ("score", op("Increment", amount=None), 107),
    ("score", op("Increment", amount="1"), 107),
    ("score", op("Increment", amount=True), 107),
    ("score", op("Increment", amount={"$gt": 0}), 107),
    ("score", op("SetOnInsert"), 107),
    ("score", op("Multiply", amount=2), 108),
    ("score", op(""), 108),
    ("score", {"__op": None}, 108),
    ("score", {"__op": {"a": 1}}, 108),
    ("list", op("Add"), 107),
    ("list", op("Add", objects="x"), 107),
    ("list", op("Add", objects={"0": 1}), 107),
    ("list", op("AddUnique", objects=1), 107),
    ("list", op("Remove", objects=None), 107),
    ("list", op("AddRelation", objects="x"), 107),
    ("list", op("Batch", ops=[op("Add", objects=[1])]), 107),
    # Typed values
    ("when", {"__type": "Date", "iso": "not a date"}, 111),
    ("when", {"__type": "Date", "iso": "2020-13-01T00:00:00.000Z"}, 111),
    ("when", {"__type": "Date", "iso": 5}, 111),
    ("when", {"__type": "Date"}, 111),
    ("spot", {"__type": "GeoPoint", "latitude": 100, "longitude": 0}, 111),
    ("spot", {"__type": "GeoPoint", "latitude": 0, "longitude": 181}, 111),
    ("spot", {"__type": "GeoPoint", "latitude": "0", "longitude": 0}, 111),
    ("spot", {"__type": "GeoPoint", "latitude": 0}, 111),
    ("area", {"__type": "Polygon", "coordinates": [[0, 0], [1, 1]]}, 111),
    ("area", {"__type": "Polygon", "coordinates": "x"}, 111),
    ("data", {"__type": "Bytes", "base64": "not base64!"}, 111),
    ("file", {"__type": "File"}, 111),
    ("ptr", {"__type": "Pointer", "className": "Player"}, 111),
    ("ptr", {"__type": "Pointer", "className": "a b", "objectId": "aaaaaaaaaa"}, 111),
    ("ptr", {"__type": "Pointer", "className": "Player", "objectId": 5}, 111),
    ("ptr", {"__type": "Pointer", "className": "Player", "objectId": "role:Admin"}, 111),
    ("rel", {"__type": "Relation"}, 111),
    ("odd", {"__type": "Unknown"}, 111),
    ("odd", {"__type": 5}, 111),
    # Text that PostgreSQL can't keep
    ("name", "a\x00b", 111),
    ("name", "\ud800", 107),
    ("place", {"a\x00b": 1}, None),
    # Nested keys
    ("place", {"$where": 1}, 121),
    ("place", {"a.b": 1}, 121),
    ("place", {"a": [{"b": {"$c": 1}}]}, 121),
    ("place", {"__proto__": {"admin": True}}, 105),
    ("place", {"a": [{"constructor": 1}]}, 105),
    ("place", {"_bsontype": "Code"}, 105),
    ("place", nested(60), None),
    # Other types than the field's
    ("score", "5", 111),
    ("score", True, 111),
    ("score", [5], 111),
    ("list", {"0": 1}, 111),
    ("when", "2020-01-01T00:00:00.000Z", 111),
    ("when", 5, 111),
    # Names
    ("objectId", "aaaaaaaaaa", 105),
    ("id", "aaaaaaaaaa", 105),
    ("createdAt", "2020-01-01T00:00:00.000Z", 111),
    ("updatedAt", 5, 111),
    ("_rperm", ["*"], 105),
    ("_hashed_password", "x", 105),
    ("__proto__", {"a": 1}, 105),
    ("length", 1, 105),
    ("className", "Other", 105),
    ("a-b", 1, 105),
    ("a b", 1, 105),
    ("1a", 1, 105),
    ("", 1, 105),
    ("x" * 129, 1, 105),
    ("$set", {"a": 1}, 105),
    ("name'; DROP TABLE objects_class; --", 1, 105),
    # Access lists
    ("ACL", "x", 123),
    ("ACL", ["*"], 123),
    ("ACL", {"*": True}, 123),
    ("ACL", {"*": {"read": "x"}}, 123),
    ("ACL", {"*": {"read": 1}}, 123),
    ("ACL", {"*": {"admin": True}}, 123),
    ("ACL", {"role:": {"read": True}}, 123),
    ("ACL", {"a b": {"read": True}}, 123),
    ("ACL", op("Increment", amount=1), 123),
]


@pytest.mark.parametrize(("field", "value", "code"), REFUSED)
def test_a_bad_value_is_refused_and_nothing_is_stored(master, game, field, value, code):
    before = master.get(f"/classes/Game/{game}").json
    schema = master.get("/schemas/Game").json
    body = {"fresh": 1, field: value}
    for reply in (
        master.put(f"/classes/Game/{game}", body),
        master.post("/classes/Game", body),
        _in_batch(master, body),
    ):
        assert set(reply.json) == {"code", "error"}
        assert 400 <= reply.status < 500
        assert code in (None, reply.json["code"])
    assert master.results("Game") == [before]
    assert master.get("/schemas/Game").json == schema


def _in_batch(api: Api, body):
    reply = api.post(
        "/batch", {"requests": [{"method": "POST", "path": "/api/classes/Game", "body": body}]}
    )
    if reply.status == 200:
        reply.json = reply.json[0]["error"]
        reply.status = 400
    return reply


def test_an_object_id_in_an_update_renames_nothing(master, game):
    assert master.put(f"/classes/Game/{game}", {"objectId": "other12345"}).error == (400, 105)
    assert [obj["objectId"] for obj in master.results("Game")] == [game]


def test_add_keeps_the_order_and_the_duplicates(master, game):
    reply = master.put(f"/classes/Game/{game}", {"list": op("Add", objects=[3, 1])})
    assert reply.json["list"] == [1, 2, 3, 1]


def test_increment_two_levels_deep_increments(master, game):
    master.put(f"/classes/Game/{game}", {"place": {"b": {"c": 1}}})
    reply = master.put(f"/classes/Game/{game}", {"place.b.c": op("Increment", amount=2)})
    assert reply.json["place"] == {"b": {"c": 3}}
    assert master.get(f"/classes/Game/{game}").json["place"] == {"b": {"c": 3}}


def test_set_on_insert_sets_on_insert(master, game):
    object_id = master.make("Game", score=op("SetOnInsert", amount=4))
    assert master.get(f"/classes/Game/{object_id}").json["score"] == 4


def test_an_operator_inside_of_a_value_is_refused_or_kept_as_data_but_never_run(master, game):
    reply = master.put(f"/classes/Game/{game}", {"place": {"x": op("Increment", amount=1)}})
    stored = master.get(f"/classes/Game/{game}").json["place"]
    assert stored == ({"x": 1} if reply.status != 200 else {"x": op("Increment", amount=1)})


def test_a_second_geopoint_is_refused(master, game):
    point = {"__type": "GeoPoint", "latitude": 1, "longitude": 2}
    master.put(f"/classes/Game/{game}", {"spot": point})
    reply = master.put(f"/classes/Game/{game}", {"other": point})
    assert reply.error == (400, 111)
    assert reply.json["error"] == (
        "currently, only one GeoPoint field may exist in an object."
        " Adding other when spot already exists."
    )
    assert master.post("/classes/Fresh", {"a": point, "b": point}).error == (400, 111)


def test_numbers_too_big_to_be_any_are_refused_and_big_ones_kept(master, game):
    big = 2**256 - 1
    assert master.put(f"/classes/Game/{game}", {"score": big}).status == 200
    assert master.get(f"/classes/Game/{game}").json["score"] == big
    raw = b'{"score": 1e400}'
    assert master.call("PUT", f"/classes/Game/{game}", raw=raw).error == (400, 107)
    huge = b'{"score": 1' + b"0" * 200_000 + b"}"
    assert 400 <= master.call("PUT", f"/classes/Game/{game}", raw=huge).status < 500


@pytest.mark.django_db(transaction=True)
def test_a_text_too_long_for_a_declared_index_is_refused_with_a_reason(transactional_db):
    master = Api(MASTER)
    master.post(
        "/schemas/Game",
        {"fields": {"name": {"type": "String"}}, "indexes": {"by_name": {"name": 1}}},
    )
    saved = master.make("Game", name="short")
    long = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=20_000))
    for reply in (
        master.post("/classes/Game", {"name": long}),
        master.put(f"/classes/Game/{saved}", {"name": long}),
    ):
        assert 400 <= reply.status < 500
        assert "index" in reply.json["error"]
        assert "objects_" not in reply.json["error"]
    assert [obj["name"] for obj in master.results("Game")] == ["short"]
