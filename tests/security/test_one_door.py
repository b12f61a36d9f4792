"""Theme 1 of the advisories on Parse Server: every way in passes the same door.

A test is named by what it protects; the advisory's id (GHSA-…) is in its docstring. What is asked
goes over REST, as a POST with ``_method``, and inside of a batch.
"""

from __future__ import annotations

import pytest

from tests.rest import APPLICATION, CLIENT, READ_ONLY, Api


def test_tables_of_relations_can_not_be_reached(master, client, game, send):
    """5f92-jrq3-28rc: writing ``_Join:users:_Role`` makes one an admin."""
    body = {"owningId": "a", "relatedId": "b"}
    for api in (client, master):
        for name in ("_Join:users:_Role", "_Join%3Ausers%3A_Role", "objects_relation;"):
            for method in ("GET", "POST"):
                reply = send(api, method, f"/classes/{name}", body if method == "POST" else None)
                assert reply.json["code"] in (103, 107)


@pytest.mark.parametrize("name", ["_GraphQLConfig", "_Audience", "_Hooks", "_GlobalConfig"])
def test_classes_of_the_service_itself_are_for_the_master_key(master, client, send, name):
    """7xg7-rqf6-pw6c, fcv6-fg5r-jm9q: reachable through /classes and through include."""
    object_id = master.make(name, note="internal")
    for method, path, body in (
        ("GET", f"/classes/{name}", None),
        ("GET", f"/classes/{name}/{object_id}", None),
        ("POST", f"/classes/{name}", {"a": 1}),
        ("PUT", f"/classes/{name}/{object_id}", {"a": 1}),
        ("DELETE", f"/classes/{name}/{object_id}", None),
    ):
        assert send(client, method, path, body).json["code"] == 119
    ref = master.make("Ref", to={"__type": "Pointer", "className": name, "objectId": object_id})
    shown = send(client, "GET", f"/classes/Ref/{ref}", {"include": "to"})
    assert "internal" not in str(shown.json)


def test_the_read_only_master_key_writes_on_no_way(master, reader, game, send):
    """vc89-5g3r-cmhh, xfh7-phr7-gr2x, 79wj-8rqv-jvp5: each found another door to write by."""
    for method, path, body in (
        ("POST", "/classes/Game", {"score": 1}),
        ("POST", "/classes/Fresh", {"score": 1}),
        ("PUT", f"/classes/Game/{game}", {"score": 2}),
        ("DELETE", f"/classes/Game/{game}", None),
        ("POST", "/schemas/Fresh", {"fields": {}}),
        ("PUT", "/schemas/Game", {"fields": {"x": {"type": "String"}}}),
        ("DELETE", "/schemas/Game", None),
        ("DELETE", "/purge/Game", None),
    ):
        before = master.get("/schemas").json, master.results("Game")
        assert send(reader, method, path, body).json["code"] == 119
        assert (master.get("/schemas").json, master.results("Game")) == before


def test_routes_of_the_master_key_are_closed_to_others_on_every_way(master, client, game, send):
    """p84r-h6rx-f2xr: what a route refuses, a batch let through."""
    for api in (client, Api(APPLICATION)):
        for method, path in (
            ("GET", "/schemas"),
            ("GET", "/schemas/Game"),
            ("PUT", "/schemas/Game"),
            ("DELETE", "/purge/Game"),
            ("GET", "/aggregate/Game"),
        ):
            reply = send(api, method, path, {"fields": {}} if method == "PUT" else None)
            assert reply.json["code"] in (119, 262)
    assert len(master.results("Game")) == 1


def test_an_object_of_others_is_reached_on_no_way(master, client, send):
    """97pr-9hgg-3p8r: the access list was checked on some of the ways only."""
    hidden = master.make("Game", name="hidden", ACL={})
    pointer = {"__type": "Pointer", "className": "Game", "objectId": hidden}
    ref = master.make("Ref", to=pointer, name="hidden")
    path = f"/classes/Game/{hidden}"
    assert send(client, "GET", path, None).json["code"] == 101
    assert send(client, "PUT", path, {"name": "x"}).json["code"] == 101
    assert send(client, "DELETE", path, None).json["code"] == 101
    assert send(client, "GET", "/classes/Game", {"count": 1}).json == {"results": [], "count": 0}
    assert "to" not in send(client, "GET", f"/classes/Ref/{ref}", {"include": "to"}).json
    for where in (
        {"to": {"$inQuery": {"className": "Game", "where": {}}}},
        {"name": {"$select": {"query": {"className": "Game"}, "key": "name"}}},
    ):
        assert send(client, "GET", "/classes/Ref", {"where": where}).json == {"results": []}


def test_an_override_gives_no_rights_and_works_in_a_post_alone(master, client, game):
    """vpvj-hfh8-388m: the override went round checks on the method."""
    hidden = master.make("Game", name="hidden", ACL={"*": {"read": True}})
    path = f"/classes/Game/{hidden}"
    assert client.post(path, {"_method": "DELETE"}).error == (404, 101)
    assert client.call("GET", path, {"_method": "DELETE"}).status in (200, 400)
    assert client.call("PUT", path, {"_method": "DELETE"}).status >= 400
    assert Api(READ_ONLY).post(path, {"_method": "DELETE"}).error == (400, 119)
    assert Api(CLIENT).get(path).status == 200
