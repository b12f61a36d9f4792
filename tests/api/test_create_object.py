"""POST /classes/{ClassName}."""

from __future__ import annotations

import re

import pytest

from backend.settings.conf import service_settings

FILES = f"{service_settings.PUBLIC_URL}/api/files/test-app"


def test_answers_201_with_id_time_and_location(master):
    reply = master.post("/classes/Game", {"score": 1})
    assert reply.status == 201
    assert set(reply.json) == {"objectId", "createdAt"}
    assert re.fullmatch(r"[A-Za-z0-9]{10}", reply.json["objectId"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", reply.json["createdAt"])
    assert reply.headers["Location"].endswith(f"/api/classes/Game/{reply.json['objectId']}")


def test_updated_at_equals_created_at(master):
    created = master.post("/classes/Game", {"score": 1}).json
    stored = master.get(f"/classes/Game/{created['objectId']}").json
    assert stored["createdAt"] == stored["updatedAt"] == created["createdAt"]


def test_an_empty_body_makes_an_empty_object(master):
    reply = master.call("POST", "/classes/Game")
    assert reply.status == 201
    assert set(master.get(f"/classes/Game/{reply.json['objectId']}").json) == {
        "objectId",
        "createdAt",
        "updatedAt",
    }


def test_values_come_back_as_they_were_sent(master):
    sent = {
        "text": "snow ☃ 𝄞",
        "whole": 2**200,
        "fraction": 0.1,
        "yes": True,
        "nothing": None,
        "list": [1, "two", {"three": 3}, None],
        "object": {"a": {"b": [1]}},
        "when": {"__type": "Date", "iso": "2020-01-02T03:04:05.678Z"},
        "place": {"__type": "GeoPoint", "latitude": 40.5, "longitude": -30},
        "bytes": {"__type": "Bytes", "base64": "AQID"},
        "owner": {"__type": "Pointer", "className": "Owner", "objectId": "abcdefghij"},
        "file": {"__type": "File", "name": "a.txt", "url": f"{FILES}/a.txt"},
        "area": {"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [1, 1], [0, 0]]},
    }
    object_id = master.make("Game", **sent)
    stored = master.get(f"/classes/Game/{object_id}").json
    assert {name: stored[name] for name in sent} == sent


def test_a_client_may_not_make_a_class(client, master):
    reply = client.post("/classes/Game", {"score": 1})
    assert reply.error == (400, 119)
    assert reply.json["error"] == "This user is not allowed to access non-existent class: Game"
    assert master.get("/schemas/Game").error == (400, 103)


def test_a_client_creates_in_a_class_that_is_there(client, master):
    master.make("Game", score=1)
    assert client.post("/classes/Game", {"score": 2}).status == 201


def test_clients_make_classes_where_the_setting_allows_it(client, settings):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CLIENT_CLASS_CREATION": True}
    assert client.post("/classes/Game", {"score": 1}).status == 201


@pytest.mark.parametrize("name", ["9lives", "a-b", "_Secret", "with.dot", "length", "x" * 129])
def test_a_bad_class_name_is_refused(master, name):
    assert master.post(f"/classes/{name}", {"a": 1}).error == (400, 103)


def test_the_first_write_fixes_the_type_of_a_field(master):
    master.make("Game", score=1)
    reply = master.post("/classes/Game", {"score": "many"})
    assert reply.error == (400, 111)
    assert reply.json["error"] == "schema mismatch for Game.score; expected Number but got String"


def test_null_fixes_no_type(master):
    master.make("Game", score=None)
    assert "score" not in master.get("/schemas/Game").json["fields"]
    master.make("Game", score="many")


def test_a_refused_object_leaves_no_class_and_no_field_behind(master):
    assert master.post("/classes/Fresh", {"good": 1, "bad": {"__type": "Date"}}).status == 400
    assert master.get("/schemas/Fresh").error == (400, 103)


def test_operators_make_their_result_and_are_echoed(master):
    reply = master.post(
        "/classes/Game",
        {
            "score": {"__op": "Increment", "amount": 3},
            "tags": {"__op": "AddUnique", "objects": ["a", "a", "b"]},
            "gone": {"__op": "Delete"},
            "list": {"__op": "Remove", "objects": [1]},
        },
    )
    assert reply.status == 201
    assert reply.json["score"] == 3
    assert reply.json["tags"] == ["a", "b"]
    assert reply.json["list"] == []
    stored = master.get(f"/classes/Game/{reply.json['objectId']}").json
    assert "gone" not in stored
    assert stored["tags"] == ["a", "b"]


@pytest.mark.parametrize("name", ["objectId", "id"])
def test_names_of_the_service_are_refused(master, name):
    assert master.post("/classes/Game", {name: "abcdefghij"}).error == (400, 105)


def test_a_custom_id_is_taken_where_the_setting_allows_it(master, settings):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CUSTOM_OBJECT_ID": True}
    assert master.make("Game", objectId="my-id", score=1) == "my-id"
    requests = [
        {"method": "POST", "path": "/api/classes/Game", "body": {"objectId": name}}
        for name in ("one", "two")
    ]
    answers = master.post("/batch", {"requests": requests}).json
    assert [answer["success"]["objectId"] for answer in answers] == ["one", "two"]
    assert master.post("/classes/Game", {"objectId": "my-id"}).error == (400, 137)
    assert master.post("/classes/Game", {"objectId": "role:Admin"}).error == (400, 104)


def test_an_acl_is_kept_and_shown(master):
    acl = {"*": {"read": True}, "role:Admins": {"read": True, "write": True}}
    object_id = master.make("Game", ACL=acl)
    assert master.get(f"/classes/Game/{object_id}").json["ACL"] == acl


def test_a_required_field_that_is_missing_is_refused(master):
    master.post(
        "/schemas/Game",
        {"className": "Game", "fields": {"name": {"type": "String", "required": True}}},
    )
    reply = master.post("/classes/Game", {"score": 1})
    assert reply.error == (400, 142)
    assert reply.json["error"] == "name is required"


def test_a_default_value_is_stored_and_echoed(master):
    master.post(
        "/schemas/Game",
        {"fields": {"level": {"type": "Number", "defaultValue": 7}}},
    )
    reply = master.post("/classes/Game", {})
    assert reply.json["level"] == 7
    assert master.get(f"/classes/Game/{reply.json['objectId']}").json["level"] == 7


@pytest.mark.parametrize("object_id", ["", None])
def test_where_ids_are_chosen_an_empty_one_is_missing(client, master, settings, object_id):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CUSTOM_OBJECT_ID": True}
    master.make("Game")
    reply = client.post("/classes/Game", {"objectId": object_id})
    assert reply.error == (400, 104)
    assert reply.json["error"] == "objectId must not be empty, null or undefined"
    assert len(client.post("/classes/Game", {}).json["objectId"]) == 10
