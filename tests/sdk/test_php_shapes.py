"""Requests of the PHP SDK (parse-php-sdk 2.4.0), and what it reads from responses.

An empty associative array is ``[]`` in its JSON, and every response is JSON or empty.
"""

from __future__ import annotations

import json

import pytest

from tests.rest import Api
from tests.sdk.shapes import (
    APPLICATION_ID,
    REST_KEY,
    Sdk,
    assert_created,
    assert_file,
    assert_object,
    assert_updated,
    assert_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def php() -> Sdk:
    return Sdk(
        {
            "X-Parse-Application-Id": APPLICATION_ID,
            "X-Parse-Client-Version": "php2.4.0",
            "X-Parse-REST-API-Key": REST_KEY,
            "X-Parse-Revocable-Session": "1",
            "Expect": "",
        }
    )


def test_objects_are_saved_and_queried(php, master: Api):
    master.make("Note", stars=1, text="a")
    date = {"__type": "Date", "iso": "2026-05-01T12:00:00.123Z"}
    made = php.json("POST", "/classes/Note", {"stars": 2, "at": date, "list": []})
    assert_created(made)
    path = f"/classes/Note/{made['objectId']}"
    assert_updated(php.json("PUT", path, {"stars": {"__op": "Increment", "amount": 1}}))
    query = {"where": json.dumps({"stars": {"$gt": 1}}), "limit": "1", "order": "-createdAt"}
    [result] = php.json("GET", "/classes/Note", query=query)["results"]
    assert_object(result)
    assert result["at"] == date
    counted = php.json("GET", "/classes/Note", query={"limit": "0", "count": "1"})
    assert counted["count"] == 2
    assert php.json("DELETE", path) == {}


def test_an_object_without_fields_is_an_empty_list(php, master: Api):
    master.make("Note", stars=1)
    assert_created(php.json("POST", "/classes/Note", {}))
    requests = [
        {"method": "POST", "path": "/api/classes/Note", "body": []},
        {"method": "POST", "path": "/api/classes/Note", "body": {"stars": 2}},
    ]
    body = php.json("POST", "/batch", {"requests": requests})
    for item in body:
        assert_created(item["success"])


def test_users_sign_up_and_log_in(php):
    body = {"username": "ann", "password": "correct horse"}
    assert_user(php.json("POST", "/users", body))
    logged_in = php.json("POST", "/login", body)
    assert_user(logged_in)
    php.token = logged_in["sessionToken"]
    assert_object(php.json("GET", "/users/me"))
    assert php.json("POST", "/logout") == {}


def test_a_file_is_the_body(php, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_UPLOAD_PUBLIC": True}
    uploaded = php.send("POST", "/files/hello.txt", b"hello", content_type="text/plain").json
    assert_file(uploaded)
    # The SDK knows no type for many extensions and sends this one.
    uploaded = php.send("POST", "/files/a.unknown", b"hello", content_type="unknown/unknown").json
    assert_file(uploaded)
