"""Theme 3 of the advisories on Parse Server: parameters are what their types say, never code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest import MASTER, Api

HOSTILE_NAMES = ["a'b", 'a"b', "x' OR '1'='1", "a;--", "a b", "a\\'b"]


@pytest.mark.parametrize("key", ["__proto__", "constructor", "prototype", "_bsontype"])
def test_keys_that_poison_javascript_objects_are_refused_at_any_depth(master, game, send, key):
    """462x-c3jw-7vr6, q342-9w2p-57fp: the scan stopped at the first nested object."""
    value: Any = {"harmless": {"x": 1}, key: {"admin": True}}
    for level in range(4):
        for method, path in (("POST", "/classes/Game"), ("PUT", f"/classes/Game/{game}")):
            reply = send(master, method, path, {"info": value})
            assert reply.json["code"] == 105, level
        value = {"a": [{"b": 1}, value]} if level % 2 else {"first": {}, "second": value}
    assert len(master.results("Game")) == 1


@pytest.mark.parametrize(
    "object_id", ["role:Admin", "*", "role:", "a b", "", "../x", "a/b", {"$gt": ""}]
)
def test_an_object_id_can_not_be_taken_for_a_role(master, settings, send, object_id):
    """8xq9-g7ch-35hg: an own objectId that starts with ``role:`` grants the role."""
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CUSTOM_OBJECT_ID": True}
    reply = send(master, "POST", "/classes/Game", {"objectId": object_id})
    assert reply.json["code"] == 104


@pytest.mark.parametrize("name", ["toString", "hasOwnProperty", "valueOf", "isPrototypeOf"])
def test_names_of_inherited_members_are_ordinary_names(master, game, send, name):
    """5j86-7r7m-p8h6, 4263-jgmp-7pf4, vpj2-qq7w-5qq6: found in a prototype instead of a table."""
    assert send(master, "GET", f"/classes/{name}", None).json == {"results": []}
    assert send(master, "GET", f"/schemas/{name}", None).json["code"] == 103
    response = send(master, "GET", "/classes/Game", {"where": {name: 1}})
    assert response.json == {"results": []}


@pytest.mark.parametrize(
    "name", ["_MasterKey", "_ApplicationId", "_JavaScriptKey", "_SessionToken", "_InstallationId"]
)
@pytest.mark.parametrize("value", [{"$ne": None}, {"$regex": "."}, ["test-master-key"], True, 1])
def test_credentials_are_texts(game, name, value):
    """vgjh-hmwf-c588, 5fw2-8jcv-xh87: a token that is an object becomes an operator."""
    body = {"_ApplicationId": "test-app", "_MasterKey": "test-master-key", name: value}
    assert Api().post("/classes/Game", body).status in (400, 403)
    assert len(Api(MASTER).results("Game")) == 1


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_of_fields_never_become_sql(master, game, send, name):
    """6927-3vr9-fxf2, c2hr-cqg6-8j6r, qpr4-jrj4-6f27, gqpp-xgvh-9h7h: dots, Increment, order."""
    before = master.results("Game")
    for method, path, body in (
        ("GET", "/classes/Game", {"where": {name: 1}}),
        ("GET", "/classes/Game", {"order": name}),
        ("PUT", f"/classes/Game/{game}", {name: {"__op": "Increment", "amount": 1}}),
        ("PUT", f"/classes/Game/{game}", {f"secret.{name}": {"$op": 1}}),
        ("GET", "/aggregate/Game", {"distinct": name}),
        ("GET", "/aggregate/Game", {"pipeline": [{"$group": {"_id": f"${name}"}}]}),
        ("GET", "/aggregate/Game", {"pipeline": [{"$sort": {name: 1}}]}),
    ):
        reply = send(master, method, path, body)
        assert reply.status < 500
        assert "syntax" not in str(reply.json)
    assert master.results("Game") == before
