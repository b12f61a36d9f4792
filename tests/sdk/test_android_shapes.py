"""Requests of the Android SDK (Parse-SDK-Android 4.4.0), and what it reads from responses.

It sends the parameters of GET in the body of a POST, as texts, and puts the id of an object into
the body of an update.
"""

from __future__ import annotations

import json

import pytest

from tests.rest import Api
from tests.sdk.shapes import (
    APPLICATION_ID,
    CLIENT_KEY,
    Sdk,
    assert_created,
    assert_file,
    assert_object,
    assert_updated,
    assert_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def android() -> Sdk:
    return Sdk(
        {
            "X-Parse-Application-Id": APPLICATION_ID,
            "X-Parse-Client-Key": CLIENT_KEY,
            "X-Parse-Client-Version": "a4.4.0",
            "X-Parse-App-Build-Version": "7",
            "X-Parse-App-Display-Version": "1.2",
            "X-Parse-OS-Version": "14",
            "User-Agent": "Parse Android SDK API Level 34",
            "X-Parse-Installation-Id": "9d3f6f5c-5f3d-4c4e-8a44-2b8e4bb1a002",
        }
    )


@pytest.fixture
def notes(master: Api) -> Api:
    master.make("Note", stars=1, text="a")
    master.make("Note", stars=2, text="b")
    return master


def test_an_update_has_the_id_of_the_object_in_its_body(android, notes):
    made = android.json("POST", "/classes/Note", {"stars": 3, "tags": ["x"]})
    assert_created(made)
    path = f"/classes/Note/{made['objectId']}"
    body = {
        "stars": {"__op": "Increment", "amount": 2},
        "tags": {"__op": "AddUnique", "objects": ["y"]},
        "text": {"__op": "Delete"},
        "objectId": made["objectId"],
    }
    assert_updated(android.json("PUT", path, body))
    fetched = android.json("GET", path)
    assert_object(fetched)
    assert (fetched["stars"], fetched["tags"]) == (5, ["x", "y"])
    assert android.json("DELETE", path) == {}


def test_queries_are_posts_whose_parameters_are_texts(android, notes):
    body = {
        "where": json.dumps({"stars": {"$gt": 0}}),
        "order": "-stars,createdAt",
        "keys": "stars",
        "include": "owner",
        "limit": "10",
        "skip": "1",
        "_method": "GET",
    }
    [result] = android.json("POST", "/classes/Note", body)["results"]
    assert_object(result)
    assert (result["stars"], "text" in result) == (1, False)
    body = {"where": "{}", "limit": "0", "count": "1", "_method": "GET"}
    assert android.json("POST", "/classes/Note", body) == {"results": [], "count": 2}


def test_users_log_in_by_a_post_that_stands_for_get(android):
    signed_up = android.json(
        "POST",
        "/users",
        {"username": "ann", "password": "correct horse"},
        headers={"X-Parse-Revocable-Session": "1"},
    )
    assert_user(signed_up)
    logged_in = android.json(
        "POST",
        "/login",
        {"username": "ann", "password": "correct horse", "_method": "GET"},
        headers={"X-Parse-Revocable-Session": "1"},
    )
    assert_user(logged_in)
    android.token = logged_in["sessionToken"]
    assert android.json("GET", "/users/me")["username"] == "ann"
    path = f"/classes/_User/{logged_in['objectId']}"
    assert_updated(android.json("PUT", path, {"nick": "a", "objectId": logged_in["objectId"]}))
    assert android.json("POST", "/logout", {}) == {}


def test_a_batch_of_saves_and_deletions(android, notes):
    requests = [
        {"method": "POST", "path": "/api/classes/Note", "body": {"stars": 7}},
        {"method": "DELETE", "path": "/api/classes/Note/missing123", "body": {}},
    ]
    body = android.json("POST", "/batch", {"requests": requests})
    assert isinstance(body, list)
    assert_created(body[0]["success"])
    assert (body[1]["error"]["code"], type(body[1]["error"]["error"])) == (101, str)


def test_a_file_is_streamed_with_its_media_type(android, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_UPLOAD_PUBLIC": True}
    sent = android.send("POST", "/files/my file.txt", b"hello", content_type="text/plain")
    assert_file(sent.json)
    assert "my%20file.txt" in sent.json["url"]
    assert_file(android.send("POST", "/files/file", b"x", content_type="").json)


def test_an_installation_is_saved_as_an_object(android):
    body = {
        "installationId": "9d3f6f5c-5f3d-4c4e-8a44-2b8e4bb1a002",
        "deviceType": "android",
        "appName": "App",
        "appVersion": "1.2",
        "timeZone": "Europe/Berlin",
        "localeIdentifier": "de-DE",
        "channels": [],
    }
    made = android.json("POST", "/classes/_Installation", body)
    assert_created(made)
    path = f"/classes/_Installation/{made['objectId']}"
    assert_updated(android.json("PUT", path, {"badge": 1, "objectId": made["objectId"]}))


def test_events_and_config(android):
    at = {"__type": "Date", "iso": "2026-05-01T12:00:00.000Z"}
    assert android.json("POST", "/events/AppOpened", {"at": at}) == {}
    assert android.json("GET", "/config")["params"] == {}
