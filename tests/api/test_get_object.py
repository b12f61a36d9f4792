"""GET /classes/{ClassName}/{objectId}."""

from __future__ import annotations

import pytest


def test_answers_the_object_with_its_id_and_times(client, master):
    object_id = master.make("Game", score=1, name="chess")
    reply = client.get(f"/classes/Game/{object_id}")
    assert reply.status == 200
    assert reply.json["objectId"] == object_id
    assert (reply.json["score"], reply.json["name"]) == (1, "chess")
    assert {"createdAt", "updatedAt"} < set(reply.json)


def test_a_missing_object_is_404(client, master):
    master.make("Game", score=1)
    reply = client.get("/classes/Game/aaaaaaaaaa")
    assert reply.error == (404, 101)
    assert reply.json["error"] == "Object not found."


def test_an_object_of_another_class_is_404(client, master):
    object_id = master.make("Game", score=1)
    master.make("Player", name="a")
    assert client.get(f"/classes/Player/{object_id}").error == (404, 101)


def test_an_object_that_may_not_be_read_is_404(client, master):
    object_id = master.make("Game", score=1, ACL={})
    assert client.get(f"/classes/Game/{object_id}").error == (404, 101)
    assert master.get(f"/classes/Game/{object_id}").status == 200


def test_a_missing_class_is_404_to_the_master_key_and_forbidden_to_clients(client, master):
    assert master.get("/classes/Nothing/aaaaaaaaaa").error == (404, 101)
    assert client.get("/classes/Nothing/aaaaaaaaaa").error == (400, 119)


def test_the_read_only_master_key_reads_what_the_master_key_reads(reader, master):
    object_id = master.make("Game", score=1, ACL={})
    assert reader.get(f"/classes/Game/{object_id}").json["score"] == 1


@pytest.mark.parametrize(
    "parameter", ["where", "limit", "skip", "order", "count", "redirectClassNameForKey", "odd"]
)
def test_only_what_shapes_one_object_may_be_asked(client, master, parameter):
    object_id = master.make("Game", score=1)
    reply = client.get(f"/classes/Game/{object_id}", **{parameter: "1"})
    assert reply.error == (400, 102)
    assert reply.json["error"] == f"Improper encode of parameter: {parameter}"


def test_keys_and_include_shape_the_object(client, master):
    player = master.make("Player", name="Ann", secret=1)
    object_id = master.make("Game", score=1, level=2, player=pointer("Player", player))
    shaped = client.get(f"/classes/Game/{object_id}", keys="score,player.name", include="player")
    assert set(shaped.json) == {"objectId", "createdAt", "updatedAt", "score", "player"}
    assert shaped.json["player"]["name"] == "Ann"
    assert "secret" not in shaped.json["player"]


def test_a_get_may_be_sent_as_a_post(client, master):
    object_id = master.make("Game", score=1, level=2)
    reply = client.post(f"/classes/Game/{object_id}", {"_method": "GET", "keys": "level"})
    assert reply.status == 200
    assert reply.json["level"] == 2
    assert "score" not in reply.json


def test_head_answers_like_get(client, master):
    object_id = master.make("Game", score=1)
    assert client.call("HEAD", f"/classes/Game/{object_id}").status == 200


def pointer(class_name, object_id):
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}
