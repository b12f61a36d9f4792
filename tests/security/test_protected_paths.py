"""Theme 4 of the advisories on Parse Server: protected fields are protected on every path."""

from __future__ import annotations

import pytest


def protect(master, *fields, class_name="Game"):
    actions = ("find", "get", "count", "create", "update", "delete", "addField")
    permissions = {action: {"*": True} for action in actions}
    permissions["protectedFields"] = {"*": list(fields)}
    reply = master.put(f"/schemas/{class_name}", {"classLevelPermissions": permissions})
    assert reply.status == 200


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
