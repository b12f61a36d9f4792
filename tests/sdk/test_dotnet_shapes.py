"""Requests of the .NET SDK (Parse-SDK-dotNET 5.0.1), and what it reads from responses.

It sends its key as a Windows key, asks for no cached responses, and gives each request the present
as the time since when something should have been modified.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.utils.http import http_date

from tests.rest import Api
from tests.sdk.shapes import (
    APPLICATION_ID,
    CLIENT_KEY,
    MASTER_KEY,
    Sdk,
    assert_created,
    assert_file,
    assert_object,
    assert_updated,
    assert_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def dotnet() -> Sdk:
    return Sdk(
        {
            "X-Parse-Installation-Id": "9d3f6f5c-5f3d-4c4e-8a44-2b8e4bb1a003",
            "X-Parse-Application-Id": APPLICATION_ID,
            "X-Parse-Client-Version": "5.0.1",
            "X-Parse-Windows-Key": CLIENT_KEY,
            "Cache-Control": "no-cache",
            "If-Modified-Since": http_date((datetime.now(UTC) + timedelta(hours=1)).timestamp()),
        },
        is_chunked=True,
    )


def test_the_windows_key_is_a_client_key(dotnet, master: Api):
    master.make("Note", stars=1)
    assert len(dotnet.json("GET", "/classes/Note")["results"]) == 1
    dotnet.extra = {"X-Parse-Windows-Key": "wrong"}
    assert dotnet.send("GET", "/classes/Note").error == (403, 262)
    dotnet.extra = {"X-Parse-Windows-Key": "", "X-Parse-Master-Key": MASTER_KEY}
    assert dotnet.send("GET", "/classes/Note").status == 200


def test_objects_are_saved_and_read(dotnet, master: Api):
    master.make("Note", stars=1)
    date = {"iso": "2026-05-01T12:00:00.000Z", "__type": "Date"}
    made = dotnet.json("POST", "/classes/Note", {"stars": 2, "at": date})
    assert_created(made)
    path = f"/classes/Note/{made['objectId']}"
    assert_object(dotnet.json("GET", path))
    assert_updated(dotnet.json("PUT", path, {"stars": {"__op": "Increment", "amount": 1}}))
    query = {"where": json.dumps({"stars": 3}), "order": "-createdAt", "limit": "1"}
    [result] = dotnet.json("GET", "/classes/Note", query=query)["results"]
    assert result["at"] == {"__type": "Date", "iso": date["iso"]}
    counted = dotnet.json("GET", "/classes/Note", query={"limit": "0", "count": "1"})
    assert counted["count"] == 2
    assert dotnet.json("DELETE", path) == {}


def test_users_sign_up_as_objects_and_log_in(dotnet):
    body = {"username": "ann", "password": "correct horse"}
    assert_user(dotnet.json("POST", "/classes/_User", body))
    logged_in = dotnet.json("POST", "/login", body)
    assert_user(logged_in)
    dotnet.token = logged_in["sessionToken"]
    assert dotnet.json("GET", "/users/me")["username"] == "ann"
    # A POST without content.
    assert dotnet.json("POST", "/logout") == {}


def test_a_file_is_streamed_and_downloaded(dotnet, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_UPLOAD_PUBLIC": True}
    uploaded = dotnet.send("POST", "/files/note.txt", b"hello", content_type="text/plain").json
    assert_file(uploaded)
    path = uploaded["url"].partition("localhost:8000")[2]
    downloaded = dotnet.send("GET", path)
    assert (downloaded.status, downloaded.body) == (200, b"hello")


def test_a_batch_removes_objects(dotnet, master: Api):
    note = master.make("Note", stars=1)
    requests = [{"method": "DELETE", "path": f"/api/classes/Note/{note}"}]
    assert dotnet.json("POST", "/batch", {"requests": requests}) == [{"success": {}}]
