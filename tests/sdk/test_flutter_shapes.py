"""Requests of the Dart and Flutter SDK (Parse-SDK-Flutter, dart 9.7.0), and what it reads.

Where it names no media type, Dart's client sends ``text/plain; charset=utf-8``.
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
def flutter() -> Sdk:
    return Sdk(
        {
            "user-agent": "Flutter Parse SDK 9.7.0",
            "X-Parse-Application-Id": APPLICATION_ID,
            "X-Parse-Client-Key": CLIENT_KEY,
        },
        content_type="text/plain; charset=utf-8",
    )


def test_objects_are_saved_and_queried(flutter, master: Api):
    master.make("Note", stars=1, text="a")
    made = flutter.json("POST", "/classes/Note", {"stars": 2, "text": "é"})
    assert_created(made)
    path = f"/classes/Note/{made['objectId']}"
    assert_updated(flutter.json("PUT", path, {"stars": {"__op": "Increment", "amount": 1}}))
    query = {"where": json.dumps({"stars": 3}), "limit": "1", "include": "owner"}
    [result] = flutter.json("GET", "/classes/Note", query=query)["results"]
    assert_object(result)
    assert result["text"] == "é"
    counted = flutter.json("GET", "/classes/Note", query={"count": "1", "limit": "0"})
    assert counted["count"] == 2
    assert_object(flutter.json("GET", path))
    assert flutter.json("DELETE", path) == {}


def test_users_sign_up_log_in_and_out(flutter):
    headers = {
        "X-Parse-Revocable-Session": "1",
        "X-Parse-Installation-Id": "9d3f6f5c-5f3d-4c4e-8a44-2b8e4bb1a004",
    }
    body = {"username": "ann", "password": "correct horse", "email": "ann@example.org"}
    assert_user(flutter.json("POST", "/users", body, headers=headers))
    body = {"username": "ann", "password": "correct horse"}
    logged_in = flutter.json("POST", "/login", body, headers=headers)
    assert_user(logged_in)
    flutter.token = logged_in["sessionToken"]
    assert_object(flutter.json("GET", "/users/me"))
    path = f"/classes/_User/{logged_in['objectId']}"
    assert_updated(flutter.json("PUT", path, {"nick": "a", "objectId": logged_in["objectId"]}))
    assert flutter.json("POST", "/logout", {}) == {}


def test_a_batch_and_a_function_are_plain_text(flutter, master: Api):
    master.make("Note", stars=1)
    requests = [{"method": "POST", "path": "/api/classes/Note", "body": {"stars": 4}}]
    [item] = flutter.json("POST", "/batch", {"requests": requests})
    assert_created(item["success"])
    assert flutter.send("POST", "/functions/unknown", {}).error == (400, 141)


def test_a_file_is_streamed(flutter, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_UPLOAD_PUBLIC": True}
    uploaded = flutter.send("POST", "/files/p.png", b"\x89PNG", content_type="image/png")
    assert uploaded.status == 201
    assert_file(uploaded.json)
    # In a browser: base64 of the content with its type as text.
    body = {
        "base64": "aGVsbG8=",
        "_ContentType": "text/plain",
        "_ApplicationId": APPLICATION_ID,
        "_ClientKey": CLIENT_KEY,
    }
    flutter.headers = {}
    assert_file(flutter.json("POST", "/files/note.txt", body))
