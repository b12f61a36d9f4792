"""Requests of the iOS and macOS SDK (Parse-SDK-iOS-OSX 6.1.1), and what it reads from responses.

Its request id is made once for a run of the app, so it isn't one of a request.
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

VERSIONS = ["i6.1.1", "osx6.1.1", "apple-tv6.1.1", "apple-watch6.1.1"]


@pytest.fixture(params=VERSIONS)
def ios(request) -> Sdk:
    return Sdk(
        {
            "X-Parse-Application-Id": APPLICATION_ID,
            "X-Parse-Client-Key": CLIENT_KEY,
            "X-Parse-Request-Id": "5A4F2C9E-0000-4000-8000-000000000001",
            "X-Parse-Client-Version": request.param,
            "X-Parse-OS-Version": "Version 18.0 (Build 22A3354)",
            "X-Parse-App-Build-Version": "7",
            "X-Parse-App-Display-Version": "1.2",
            "X-Parse-Installation-Id": "9d3f6f5c-5f3d-4c4e-8a44-2b8e4bb1a005",
        }
    )


def test_one_request_id_for_all_requests_repeats_none_of_them(ios, master: Api):
    master.make("Note", stars=1)
    made = [ios.json("POST", "/classes/Note", {"stars": stars}) for stars in (5, 5, 6)]
    for each in made:
        assert_created(each)
    assert len({each["objectId"] for each in made}) == 3
    for each in made:
        path = f"/classes/Note/{each['objectId']}"
        assert_updated(ios.json("PUT", path, {"stars": {"__op": "Increment", "amount": 1}}))
        assert ios.json("DELETE", path) == {}


def test_queries_are_posts_that_stand_for_get(ios, master: Api):
    master.make("Note", stars=1, text="a")
    master.make("Note", stars=2, text="b")
    body = {
        "where": {"stars": {"$gt": 0}},
        "order": "-stars",
        "keys": "stars",
        "limit": "10",
        "skip": "1",
        "_method": "GET",
    }
    [result] = ios.json("POST", "/classes/Note", body)["results"]
    assert_object(result)
    assert (result["stars"], "text" in result) == (1, False)
    body = {"where": json.dumps({}), "limit": "0", "count": "1", "_method": "GET"}
    assert ios.json("POST", "/classes/Note", body)["count"] == 2


def test_users_sign_up_and_log_in(ios):
    body = {"username": "ann", "password": "correct horse"}
    headers = {"X-Parse-Revocable-Session": "1"}
    assert_user(ios.json("POST", "/users", body, headers=headers))
    logged_in = ios.json("POST", "/login", {**body, "_method": "GET"}, headers=headers)
    assert_user(logged_in)
    ios.token = logged_in["sessionToken"]
    assert_object(ios.json("GET", "/users/me"))
    assert ios.json("POST", "/logout") == {}


def test_files_and_batches(ios, master: Api, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_UPLOAD_PUBLIC": True}
    for content in (b"hello", b"hi"):
        sent = ios.send("POST", "/files/note.txt", content, content_type="text/plain")
        assert_file(sent.json)
    master.make("Note", stars=1)
    requests = [{"method": "POST", "path": "/api/classes/Note", "body": {"stars": 4}}] * 2
    for _ in range(2):
        for item in ios.json("POST", "/batch", {"requests": requests}):
            assert_created(item["success"])
