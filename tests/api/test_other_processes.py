"""What one process does to a class, another one notices with its very next request."""

from __future__ import annotations

import pytest

from tests.objects.access.world import pointer
from tests.rest import CLIENT, MASTER, Api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def game(transactional_db):
    """An object whose class this process has in memory."""
    object_id = Api(MASTER).make("Game", score=1, name="chess")
    Api(CLIENT).results("Game")
    return object_id


def client() -> Api:
    return Api(CLIENT)


def test_tightened_permissions_hold_at_once(other, game):
    other.do("PUT", "/schemas/Game", {"classLevelPermissions": {"get": {"*": True}}})
    assert client().get("/classes/Game").error == (400, 119)
    assert client().get(f"/classes/Game/{game}").status == 200
    other.do("PUT", "/schemas/Game", {"classLevelPermissions": {}})
    assert client().get(f"/classes/Game/{game}").error == (400, 119)
    assert client().put(f"/classes/Game/{game}", {"score": 2}).error == (400, 119)
    assert client().delete(f"/classes/Game/{game}").error == (400, 119)
    assert client().post("/classes/Game", {"score": 2}).error == (400, 119)
    assert client().get("/classes/Game", count=1, limit=0).error == (400, 119)


@pytest.mark.parametrize("rule", [{}, {"pointerFields": ["owner"]}], ids=["nobody", "pointers"])
@pytest.mark.parametrize("action", ["update", "addField"])
def test_tightened_permissions_hold_at_once_for_writes_that_add_a_field(other, action, rule):
    """Such a write reads the class again under its lock; so must its permissions."""
    game = Api(MASTER).make("Game", score=1, owner=pointer("_User", "somebody01"))
    client().results("Game")
    granted = {name: {"*": True} for name in ("find", "get", "create", "update", "addField")}
    other.do("PUT", "/schemas/Game", {"classLevelPermissions": {**granted, action: rule}})
    code = 101 if rule else 119
    assert client().put(f"/classes/Game/{game}", {"extra": 1}).json["code"] == code
    created = client().post("/classes/Game", {"extra": 1})
    assert created.status == 201 if action == "update" else created.json["code"] == 119
    other.do("PUT", "/schemas/Game", {"classLevelPermissions": {**granted, "create": {}}})
    assert client().post("/classes/Game", {"another": 1}).error == (400, 119)
    fields = other.do("GET", "/schemas/Game")["fields"]
    assert "another" not in fields
    assert ("extra" in fields) == (action == "update")


def test_tightened_permissions_hold_at_once_for_the_class_that_a_query_is_redirected_from(other):
    player = Api(MASTER).make("Player", name="a")
    players = {"__op": "AddRelation", "objects": [pointer("Player", player)]}
    Api(MASTER).make("Game", players=players)
    redirect = {"redirectClassNameForKey": "players"}
    assert len(client().get("/classes/Game", **redirect).json["results"]) == 1
    other.do("PUT", "/schemas/Game", {"classLevelPermissions": {"get": {"*": True}}})
    for params in (redirect, {**redirect, "count": 1, "limit": 0}):
        assert client().get("/classes/Game", **params).error == (400, 119)


def test_granted_permissions_hold_at_once(other, game):
    Api(MASTER).put("/schemas/Game", {"classLevelPermissions": {}})
    assert client().get("/classes/Game").error == (400, 119)
    granted = {name: {"*": True} for name in ("find", "get", "update", "create", "delete")}
    other.do("PUT", "/schemas/Game", {"classLevelPermissions": granted})
    assert client().get("/classes/Game").status == 200
    Api(MASTER).put("/schemas/Game", {"classLevelPermissions": {}})
    assert client().put(f"/classes/Game/{game}", {"score": 2}).error == (400, 119)
    other.do("PUT", "/schemas/Game", {"classLevelPermissions": granted})
    assert client().put(f"/classes/Game/{game}", {"score": 2}).status == 200


def test_a_protected_field_is_hidden_at_once(other, game):
    permissions = {name: {"*": True} for name in ("find", "get", "update")}
    permissions["protectedFields"] = {"*": ["score"]}
    other.do("PUT", "/schemas/Game", {"classLevelPermissions": permissions})
    assert "score" not in client().results("Game")[0]
    assert "score" not in client().get(f"/classes/Game/{game}").json
    assert client().get("/classes/Game", where={"score": 1}).error == (400, 119)
    increment = {"score": {"__op": "Increment", "amount": 1}}
    assert "score" not in client().put(f"/classes/Game/{game}", increment).json


@pytest.mark.parametrize("narrowing", ["$inQuery", "include", "$relatedTo"])
def test_permissions_of_another_class_hold_at_once_in_sub_queries_and_includes(other, narrowing):
    master = Api(MASTER)
    player = master.make("Player", name="Ann")
    pointer = {"__type": "Pointer", "className": "Player", "objectId": player}
    game = master.make("Game", owner=pointer)
    friend = {"__type": "Pointer", "className": "Game", "objectId": game}
    master.put(f"/classes/Player/{player}", {"games": {"__op": "AddRelation", "objects": [friend]}})
    params = {
        "$inQuery": {"where": {"owner": {"$inQuery": {"className": "Player", "where": {}}}}},
        "include": {"include": "owner"},
        "$relatedTo": {"where": {"$relatedTo": {"object": pointer, "key": "games"}}},
    }[narrowing]
    assert len(client().results("Game", **params)) == 1
    other.do("PUT", "/schemas/Player", {"classLevelPermissions": {"create": {"*": True}}})
    reply = client().get("/classes/Game", **params)
    if narrowing == "include":
        assert "owner" not in reply.json["results"][0]
    else:
        assert reply.error == (400, 119)


def test_a_field_of_another_type_is_known_at_once(other, game):
    other.do("PUT", "/schemas/Game", {"fields": {"level": {"type": "Number"}}})
    assert client().post("/classes/Game", {"level": "high"}).error == (400, 111)
    assert client().put(f"/classes/Game/{game}", {"level": "high"}).error == (400, 111)
    assert client().put(f"/classes/Game/{game}", {"level": 1}).status == 200


def test_a_removed_field_is_gone_at_once(other, game):
    other.do("PUT", "/schemas/Game", {"fields": {"score": {"__op": "Delete"}}})
    assert "score" not in client().results("Game")[0]
    assert client().post("/classes/Game", {"score": "text"}).status == 201
    fields = Api(MASTER).get("/schemas/Game").json["fields"]
    assert fields["score"] == {"type": "String"}


def test_a_deleted_class_is_gone_at_once(other, game):
    other.do("DELETE", "/purge/Game")
    other.do("DELETE", "/schemas/Game")
    assert client().get("/classes/Game").error == (400, 119)
    assert client().get(f"/classes/Game/{game}").error == (400, 119)
    assert client().post("/classes/Game", {"score": 1}).error == (400, 119)
    assert Api(MASTER).results("Game") == []


def _use(method, game):
    return {
        "find": lambda: client().get("/classes/Game"),
        "get": lambda: client().get(f"/classes/Game/{game}"),
        "create": lambda: client().post("/classes/Game", {"score": "text"}),
        "update": lambda: client().put(f"/classes/Game/{game}", {"score": "text"}),
        "delete": lambda: client().delete(f"/classes/Game/{game}"),
        "batch": lambda: client().post(
            "/batch",
            {
                "requests": [
                    {"method": "POST", "path": "/api/classes/Game", "body": {"score": "text"}}
                ],
                "transaction": True,
            },
        ),
    }[method]()


@pytest.mark.parametrize(
    ("method", "status"),
    [
        ("find", 200),
        ("get", 404),
        ("create", 201),
        ("update", 404),
        ("delete", 404),
        ("batch", 200),
    ],
)
def test_a_class_deleted_and_made_again_is_the_new_one_at_once(other, game, method, status):
    other.do("DELETE", "/purge/Game")
    other.do("DELETE", "/schemas/Game")
    other.do("POST", "/schemas/Game", {"fields": {"score": {"type": "String"}}})
    reply = _use(method, game)
    assert reply.status == status, reply.json
    stored = [obj["score"] for obj in Api(MASTER).results("Game")]
    assert stored == (["text"] if method in ("create", "batch") else [])


def test_objects_of_the_other_process_are_read_at_once(other, game):
    made = other.do("POST", "/classes/Game", {"score": 7, "fresh": True})
    assert client().get(f"/classes/Game/{made['objectId']}").json["fresh"] is True
    assert client().results("Game", where={"fresh": True}, order="-score")[0]["score"] == 7
