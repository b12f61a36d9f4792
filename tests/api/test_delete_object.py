"""DELETE /classes/{ClassName}/{objectId}."""

from __future__ import annotations


def test_answers_an_empty_object_and_removes_it(client, master):
    object_id = master.make("Game", score=1)
    saved = master.make("Game", score=2)
    reply = client.delete(f"/classes/Game/{object_id}")
    assert (reply.status, reply.json) == (200, {})
    assert client.get(f"/classes/Game/{object_id}").error == (404, 101)
    assert [obj["objectId"] for obj in client.results("Game")] == [saved]


def test_a_missing_object_is_404(client, master):
    object_id = master.make("Game", score=1)
    assert client.delete("/classes/Game/aaaaaaaaaa").error == (404, 101)
    assert client.delete(f"/classes/Game/{object_id}").status == 200
    assert client.delete(f"/classes/Game/{object_id}").error == (404, 101)


def test_an_object_that_may_not_be_written_is_404_and_stays(client, master):
    object_id = master.make("Game", score=1, ACL={"*": {"read": True}})
    assert client.delete(f"/classes/Game/{object_id}").error == (404, 101)
    assert client.get(f"/classes/Game/{object_id}").status == 200


def test_the_master_key_deletes_what_no_one_may_write(master):
    object_id = master.make("Game", score=1, ACL={})
    assert master.delete(f"/classes/Game/{object_id}").status == 200


def test_the_read_only_master_key_deletes_nothing(reader, master):
    object_id = master.make("Game", score=1)
    reply = reader.delete(f"/classes/Game/{object_id}")
    assert reply.error == (400, 119)
    assert reply.json["error"] == (
        "read-only masterKey isn't allowed to perform the delete operation."
    )
    assert master.get(f"/classes/Game/{object_id}").status == 200


def test_a_missing_class_is_404_to_the_master_key_and_forbidden_to_clients(client, master):
    assert master.delete("/classes/Nothing/aaaaaaaaaa").error == (404, 101)
    assert client.delete("/classes/Nothing/aaaaaaaaaa").error == (400, 119)


def test_a_delete_may_be_sent_as_a_post(client, master):
    object_id = master.make("Game", score=1)
    assert client.post(f"/classes/Game/{object_id}", {"_method": "DELETE"}).json == {}
    assert client.get(f"/classes/Game/{object_id}").error == (404, 101)


def test_a_post_to_an_object_without_an_override_is_405(client, master):
    object_id = master.make("Game", score=1)
    assert client.post(f"/classes/Game/{object_id}", {"score": 2}).error == (405, 108)


def test_a_deleted_object_takes_the_members_of_its_relations_along(master):
    player = {"__type": "Pointer", "className": "Player", "objectId": master.make("Player")}
    game = master.make("Game", players={"__op": "AddRelation", "objects": [player]})
    owner = {"__type": "Pointer", "className": "Game", "objectId": game}
    related = {"$relatedTo": {"object": owner, "key": "players"}}
    assert len(master.results("Player", where=related)) == 1
    master.delete(f"/classes/Game/{game}")
    assert master.results("Player", where=related) == []
    assert len(master.results("Player")) == 1
