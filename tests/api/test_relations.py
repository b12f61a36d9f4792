"""Relations: members added and removed, and the queries over them."""

from __future__ import annotations

import pytest


def pointer(class_name, object_id):
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


def adding(*ids, class_name="Player"):
    return {"__op": "AddRelation", "objects": [pointer(class_name, i) for i in ids]}


def removing(*ids, class_name="Player"):
    return {"__op": "RemoveRelation", "objects": [pointer(class_name, i) for i in ids]}


@pytest.fixture
def ids(master):
    return {name: master.make("Player", name=name) for name in ("ann", "bob", "cid")}


@pytest.fixture
def game(master, ids):
    return master.make("Game", name="chess", players=adding(ids["ann"], ids["bob"]))


def members(api, object_id, key="players", class_name="Game", **where):
    related = {"object": pointer(class_name, object_id), "key": key}
    results = api.results("Player", where={"$relatedTo": related, **where})
    return [obj["name"] for obj in results]


def change(master, object_id, players):
    reply = master.put(f"/classes/Game/{object_id}", {"players": players})
    assert reply.status == 200, reply.json
    return reply.json


def test_a_relation_reads_as_what_it_leads_to(client, game):
    stored = client.get(f"/classes/Game/{game}").json
    assert stored["players"] == {"__type": "Relation", "className": "Player"}


def test_every_object_of_the_class_has_the_relation(client, master, game):
    other = master.make("Game", name="go")
    stored = client.get(f"/classes/Game/{other}").json
    assert stored["players"] == {"__type": "Relation", "className": "Player"}
    assert members(client, other) == []


def test_the_schema_knows_the_relation(master, game):
    fields = master.get("/schemas/Game").json["fields"]
    assert fields["players"] == {"type": "Relation", "targetClass": "Player"}


def test_members_are_found(client, game):
    assert members(client, game) == ["ann", "bob"]


def test_members_are_narrowed_by_other_constraints(client, game):
    assert members(client, game, name={"$gt": "ann"}) == ["bob"]
    assert members(client, game, name="cid") == []


def test_members_are_counted(client, game):
    related = {"$relatedTo": {"object": pointer("Game", game), "key": "players"}}
    assert client.get("/classes/Player", where=related, count=1, limit=0).json["count"] == 2


def test_adding_twice_adds_once(client, master, ids, game):
    change(master, game, adding(ids["ann"], ids["ann"], ids["cid"]))
    assert members(client, game) == ["ann", "bob", "cid"]


def test_members_are_removed(client, master, ids, game):
    change(master, game, removing(ids["ann"], ids["cid"]))
    assert members(client, game) == ["bob"]


def test_a_batch_of_operators_adds_and_removes(client, master, ids, game):
    change(master, game, {"__op": "Batch", "ops": [adding(ids["cid"]), removing(ids["ann"])]})
    assert members(client, game) == ["bob", "cid"]


def test_changes_of_relations_are_not_echoed(master, ids, game):
    assert set(change(master, game, adding(ids["cid"]))) == {"updatedAt"}


@pytest.mark.parametrize("value", [None, {"__op": "Delete"}])
def test_deleting_a_relation_empties_it(client, master, game, value):
    change(master, game, value)
    assert members(client, game) == []
    stored = client.get(f"/classes/Game/{game}").json
    assert stored["players"] == {"__type": "Relation", "className": "Player"}


def test_a_relation_value_as_it_was_read_changes_nothing(client, master, game):
    change(master, game, {"__type": "Relation", "className": "Player"})
    assert members(client, game) == ["ann", "bob"]


def test_an_empty_relation_is_made_by_adding_no_one(client, master, ids):
    master.make("Game", players={"__type": "Relation", "className": "Player"})
    assert master.get("/schemas/Game").json["fields"]["players"]["type"] == "Relation"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"__op": "AddRelation", "objects": [pointer("Club", "aaaaaaaaaa")]}, 111),
        ({"__op": "AddRelation", "objects": "x"}, 107),
        ({"__op": "AddRelation"}, 107),
        ({"__op": "AddRelation", "objects": ["aaaaaaaaaa"]}, 111),
        ({"__op": "Batch", "ops": "x"}, 107),
        ({"__op": "Batch", "ops": [{"__op": "Increment", "amount": 1}]}, 107),
        ({"__op": "Add", "objects": [1]}, 111),
        (pointer("Player", "aaaaaaaaaa"), 111),
        ("text", 111),
        ([], 111),
    ],
)
def test_what_no_relation_can_take_is_refused(client, master, game, value, code):
    assert master.put(f"/classes/Game/{game}", {"players": value}).error == (400, code)
    assert members(client, game) == ["ann", "bob"]


def test_owners_are_found_by_a_member(client, master, ids, game):
    other = master.make("Game", name="go", players=adding(ids["bob"]))
    master.make("Game", name="empty")

    def owners(where):
        return [obj["objectId"] for obj in client.results("Game", where={"players": where})]

    assert owners(pointer("Player", ids["ann"])) == [game]
    assert owners(pointer("Player", ids["bob"])) == [game, other]
    assert owners(pointer("Player", ids["cid"])) == []
    assert owners({"$in": [pointer("Player", ids[n]) for n in ("ann", "cid")]}) == [game]
    assert game not in owners({"$ne": pointer("Player", ids["ann"])})
    assert other in owners({"$nin": [pointer("Player", ids["ann"])]})
    results = owners({"$inQuery": {"className": "Player", "where": {"name": "ann"}}})
    assert results == [game]


def test_a_deleted_member_is_found_no_more(client, master, ids, game):
    master.delete(f"/classes/Player/{ids['ann']}")
    assert members(client, game) == ["bob"]


def test_members_that_the_caller_may_not_read_are_not_found(client, master, ids, game):
    master.put(f"/classes/Player/{ids['ann']}", {"ACL": {}})
    assert members(client, game) == ["bob"]
    assert members(master, game) == ["ann", "bob"]


def test_members_of_an_owner_that_the_caller_may_not_read_are_not_found(client, master, game):
    master.put(f"/classes/Game/{game}", {"ACL": {}})
    assert members(client, game) == []
    related = {"$relatedTo": {"object": pointer("Game", game), "key": "players"}}
    assert client.get("/classes/Player", where=related, count=1).json["count"] == 0


def test_another_class_has_no_members_even_under_the_same_id(master, settings):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CUSTOM_OBJECT_ID": True}
    master.make("Player", objectId="same", name="Ann")
    master.make("Club", objectId="same", name="Eagles")
    game = master.make("Game", players=adding("same"))
    related = {"$relatedTo": {"object": pointer("Game", game), "key": "players"}}
    assert len(master.results("Player", where=related)) == 1
    assert master.results("Club", where=related) == []


def test_an_unknown_relation_or_owner_has_no_members(client, master, game):
    assert members(client, "aaaaaaaaaa") == []
    assert members(client, game, key="nothing") == []
    assert members(client, game, key="name") == []
    assert members(master, game, class_name="Nothing") == []


@pytest.mark.parametrize(
    "related",
    [
        {},
        "x",
        {"object": "x", "key": "players"},
        {"object": {"__type": "Pointer", "className": "Game", "objectId": "a"}, "key": 1},
        {"object": {"__type": "Pointer", "className": "Game", "objectId": "a"}, "key": "a'b"},
    ],
)
def test_a_malformed_related_to_is_refused(client, game, related):
    assert client.get("/classes/Player", where={"$relatedTo": related}).status == 400


def test_an_unsaved_owner_has_no_members(client, game):
    for object_id in ({}, {"objectId": None}, {"objectId": ""}):
        owner = {"__type": "Pointer", "className": "Game", **object_id}
        where = {"$relatedTo": {"object": owner, "key": "players"}}
        assert client.results("Player", where=where) == []


def test_a_removed_field_takes_the_members_along(client, master, ids, game):
    master.put("/schemas/Game", {"fields": {"players": {"__op": "Delete"}}})
    assert members(client, game) == []
    change(master, game, adding(ids["cid"]))
    assert members(client, game) == ["cid"]


def test_a_refused_update_leaves_the_members(client, master, ids, game):
    body = {"players": adding(ids["cid"]), "name": {"__op": "Increment", "amount": 1}}
    assert master.put(f"/classes/Game/{game}", body).error == (400, 111)
    assert members(client, game) == ["ann", "bob"]
    assert master.put("/classes/Game/aaaaaaaaaa", {"players": adding(ids["cid"])}).status == 404
    assert members(client, "aaaaaaaaaa") == []


def test_an_object_that_is_not_saved_yet_has_no_members(client, master):
    game, player = master.make("Game"), master.make("Player")
    add = {"__op": "AddRelation", "objects": [pointer("Player", player)]}
    master.put(f"/classes/Game/{game}", {"players": add})
    for owner in (
        {"__type": "Pointer", "className": "Game"},
        {"__type": "Pointer", "className": "Game", "objectId": None},
    ):
        related = {"$relatedTo": {"object": owner, "key": "players"}}
        assert master.results("Player", where=related) == []
    broken = {"__type": "Pointer", "className": "a b"}
    related = {"$relatedTo": {"object": broken, "key": "players"}}
    assert master.get("/classes/Player", where=related).error == (400, 111)
