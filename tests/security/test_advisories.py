"""Themes of security advisories on Parse Server, each a door that must stay shut here.

A test is named by what it protects; the advisory's id (GHSA-…) is in its docstring. What is asked
goes over REST, as a POST with ``_method``, and inside of a batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.rest import APPLICATION, CLIENT, MASTER, READ_ONLY, Api, Reply


def directly(api: Api, method: str, path: str, body: Any) -> Reply:
    if method == "GET" and body:
        encoded = {k: v if isinstance(v, str) else json.dumps(v) for k, v in body.items()}
        return api.call("GET", f"{path}?{urlencode(encoded)}")
    return api.call(method, path, body)


def overridden(api: Api, method: str, path: str, body: Any) -> Reply:
    return api.post(path, {**(body or {}), "_method": method})


def batched(api: Api, method: str, path: str, body: Any) -> Reply:
    request = {"method": method, "path": f"/api{path}", "body": body or {}}
    return _unpacked(api.post("/batch", {"requests": [request]}))


def batched_together(api: Api, method: str, path: str, body: Any) -> Reply:
    request = {"method": method, "path": f"/api{path}", "body": body or {}}
    return _unpacked(api.post("/batch", {"requests": [request], "transaction": True}))


def _unpacked(reply: Reply) -> Reply:
    if reply.status != 200:
        return reply
    (item,) = reply.json
    if "success" in item:
        return Reply(200, item["success"], reply.headers)
    return Reply(400, item["error"], reply.headers)


Send = Callable[[Api, str, str, Any], Reply]


@pytest.fixture(params=[directly, overridden, batched, batched_together])
def send(request) -> Send:
    """One of the ways on which a request can come."""
    return request.param


@pytest.fixture
def game(master):
    return master.make("Game", name="chess", secret={"word": "s"}, score=1)


def protect(master, *fields, class_name="Game"):
    actions = ("find", "get", "count", "create", "update", "delete", "addField")
    permissions = {action: {"*": True} for action in actions}
    permissions["protectedFields"] = {"*": list(fields)}
    reply = master.put(f"/schemas/{class_name}", {"classLevelPermissions": permissions})
    assert reply.status == 200


# -- Special keys ---------------------------------------------------------------------------------


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


# -- Names and ids --------------------------------------------------------------------------------


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
    found = send(master, "GET", "/classes/Game", {"where": {name: 1}})
    assert found.json == {"results": []}


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


# -- The read-only master key ---------------------------------------------------------------------


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


# -- Types of parameters --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["_MasterKey", "_ApplicationId", "_JavaScriptKey", "_SessionToken", "_InstallationId"]
)
@pytest.mark.parametrize("value", [{"$ne": None}, {"$regex": "."}, ["test-master-key"], True, 1])
def test_credentials_are_texts(game, name, value):
    """vgjh-hmwf-c588, 5fw2-8jcv-xh87: a token that is an object becomes an operator."""
    body = {"_ApplicationId": "test-app", "_MasterKey": "test-master-key", name: value}
    assert Api().post("/classes/Game", body).status in (400, 403)
    assert len(Api(MASTER).results("Game")) == 1


HOSTILE_NAMES = ["a'b", 'a"b', "x' OR '1'='1", "a;--", "a b", "a\\'b"]


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


# -- Protected fields -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"where": {"$or": [{"secret.word": "s"}, {"name": "x"}]}},
        {"where": {"$and": [{"$or": [{"secret.word": {"$regex": "^s"}}]}]}},
        {"where": {"$nor": [{"secret.word": "s"}]}},
        {"where": {"secret.word": {"$gt": "a"}}},
        {"order": "secret"},
        {"order": "-secret.word"},
        {"where": {"$text": {"$search": {"$term": "s"}}}},
    ],
)
def test_a_query_is_no_oracle_for_protected_fields(master, client, game, send, params):
    """72hp-qff8-4pvv, r2m8-pxm9-9c4g: inside of $or and $and, and by dotted paths."""
    protect(master, "secret")
    assert send(client, "GET", "/classes/Game", params).json["code"] == 119
    counted = {**params, "count": 1, "limit": 0}
    assert send(client, "GET", "/classes/Game", counted).json["code"] == 119


def test_a_redirected_query_shows_no_protected_fields(master, client, game, send):
    """6r2j-cxgf-495f: access lists and protected fields of the target class were not applied."""
    hidden = master.make("Game", name="hidden", ACL={})
    pointers = [
        {"__type": "Pointer", "className": "Game", "objectId": object_id}
        for object_id in (game, hidden)
    ]
    master.make("League", games={"__op": "AddRelation", "objects": pointers})
    protect(master, "secret")
    params = {"redirectClassNameForKey": "games"}
    (shown,) = send(client, "GET", "/classes/League", params).json["results"]
    assert shown["objectId"] == game
    assert "secret" not in shown


def test_a_relation_tells_nothing_that_its_owner_may_not_tell(master, client, game, send):
    """wmwx-jr2p-4j4r, rmhf-xv62-rm99: $relatedTo and its count ignored the owner's rights."""
    member = {"__type": "Pointer", "className": "Game", "objectId": game}
    league = master.make("League", games={"__op": "AddRelation", "objects": [member]}, ACL={})
    owner = {"__type": "Pointer", "className": "League", "objectId": league}
    params = {"where": {"$relatedTo": {"object": owner, "key": "games"}}, "count": 1}
    assert send(client, "GET", "/classes/Game", params).json == {"results": [], "count": 0}
    protect(master, "games", class_name="League")
    assert send(client, "GET", "/classes/Game", params).json["code"] == 119


def test_an_error_names_no_class_or_field_that_the_caller_did_not_name(master, client, game, send):
    """8cph-rgr4-g5vj: "did you mean" told names from the schema."""
    master.make("GameSecretPlans", a=1)
    master.put("/schemas/Game", {"classLevelPermissions": {}})
    for path in ("/classes/GameSecret", "/classes/Game", "/classes/GameSecretPlan"):
        text = str(send(client, "GET", path, {"where": {"secre": 1}}).json)
        assert "Plans" not in text
        assert "word" not in text


# -- Access lists ---------------------------------------------------------------------------------


def test_an_object_of_others_is_reached_on_no_way(master, client, send):
    """97pr-9hgg-3p8r: the access list was looked at on some of the ways."""
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


# -- Complexity -----------------------------------------------------------------------------------


def nested_or(depth):
    where: dict[str, Any] = {"score": 1}
    for _ in range(depth):
        where = {"$or": [where]}
    return where


def nested_subqueries(depth):
    where: dict[str, Any] = {}
    for _ in range(depth):
        where = {"to": {"$inQuery": {"className": "Game", "where": where}}}
    return where


@pytest.mark.parametrize(
    "params",
    [
        {"where": nested_or(60)},
        {"where": nested_subqueries(30)},
        {"where": {"$or": [{"score": n} for n in range(5000)]}},
        {"where": {"score": {"$in": list(range(20_000))}}},
        {"include": ",".join(f"a{n}" for n in range(500))},
        {"include": ".".join(["a"] * 20)},
        {"limit": 10**9, "skip": 10**12},
    ],
    ids=["depth", "sub-queries", "breadth", "list", "includes", "include depth", "numbers"],
)
def test_a_query_that_asks_too_much_is_refused(client, game, send, params):
    """cmj3-wx7h-ffvg, 6qh5-m6g3-xhq6, 9xp9-j92r-p88v: nothing bounded a query."""
    reply = send(client, "GET", "/classes/Game", params)
    assert reply.json["code"] == 102


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "^(a|a)*$", "(.*)*x", "a" * 20_000, "(" * 500 + ")" * 500, "[", "a{1,99999}"],
)
def test_a_pattern_neither_hangs_nor_breaks_nor_tells_of_the_database(
    master, client, send, pattern
):
    """mf3j-86qx-cq5j, 827p-g5x5-h86c, 9cp7-3q5w-j92g: ReDoS, and errors with inner detail."""
    master.make("Game", name="a" * 2000 + "!")
    reply = send(client, "GET", "/classes/Game", {"where": {"name": {"$regex": pattern}}})
    assert reply.status in (200, 400)
    if reply.status == 400:
        assert reply.json["code"] in (102, 107, 124)
        assert "SELECT" not in reply.json["error"]


def test_a_batch_can_not_multiply_itself(client, game):
    """cmj3-wx7h-ffvg: a batch inside of a batch."""
    inner = {"method": "POST", "path": "/api/batch", "body": {"requests": []}}
    assert client.post("/batch", {"requests": [inner] * 3}).error == (400, 107)


def test_a_schema_is_not_poisoned_by_a_refused_write(master, client, game, send):
    """9ccr-fpp6-78qf: a field stayed in the schema after its write was refused."""
    before = master.get("/schemas/Game").json
    for body in (
        {"fresh": 1, "score": "text"},
        {"fresh": {"__type": "Date", "iso": "x"}},
        {"fresh": 1, "ACL": "x"},
        {"fresh": 1, "__proto__": 1},
    ):
        assert send(client, "POST", "/classes/Game", body).status >= 400
        assert send(client, "PUT", f"/classes/Game/{game}", body).status >= 400
        assert send(client, "PUT", "/classes/Game/aaaaaaaaaa", body).status >= 400
    assert master.get("/schemas/Game").json == before


# -- Method override ------------------------------------------------------------------------------


def test_an_override_gives_no_rights_and_works_in_a_post_alone(master, client, game):
    """vpvj-hfh8-388m: the override went round checks on the method."""
    hidden = master.make("Game", name="hidden", ACL={"*": {"read": True}})
    path = f"/classes/Game/{hidden}"
    assert client.post(path, {"_method": "DELETE"}).error == (404, 101)
    assert client.call("GET", path, {"_method": "DELETE"}).status in (200, 400)
    assert client.call("PUT", path, {"_method": "DELETE"}).status >= 400
    assert Api(READ_ONLY).post(path, {"_method": "DELETE"}).error == (400, 119)
    assert Api(CLIENT).get(path).status == 200
