"""The contents of a real Parse Server arrive, read by its API and from its database.

Its ``maxLimit`` is smaller than the pages that the import requests.
"""

from __future__ import annotations

import io
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from bench import servers
from tests.people import with_token
from tests.rest import Api

pytestmark = pytest.mark.slow

POINTS = [[0, 0], [0, 1], [1, 1], [0, 0]]


class Peer:
    """A Parse Server, called with its master key."""

    def __init__(self, url: str, database: str, headers: dict[str, str]) -> None:
        self.url, self.database, self.headers = url, database, headers

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = None if body is None else json.dumps(body).encode()
        every = {"Content-Type": "application/json", **self.headers, **headers}
        request = urllib.request.Request(self.url + path, data, every, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)


def pointer(class_name: str, object_id: str) -> dict[str, str]:
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


def adding(*pointers: dict[str, str]) -> dict[str, Any]:
    return {"__op": "AddRelation", "objects": list(pointers)}


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with servers.engines() as engines, servers.peer(engines, 1, PEER_MAX_LIMIT="300") as target:
        url = f"http://127.0.0.1:{target.port}{target.mount}"
        yield Peer(url, engines.url(target.database), target.master_headers)


@pytest.fixture(scope="module")
def contents(peer: Peer) -> dict[str, Any]:
    """Fill the Parse Server; return ids and a session token."""
    users = [
        peer.call("POST", "/users", {"username": f"user{n}", "password": f"secret{n}", "level": n})
        for n in range(3)
    ]
    ann, bob, _ = [pointer("_User", user["objectId"]) for user in users]
    session = peer.call("GET", "/login?username=user0&password=secret0")["sessionToken"]
    peer.call(
        "POST",
        "/schemas/Note",
        {
            "className": "Note",
            "fields": {"text": {"type": "String", "required": True}, "n": {"type": "Number"}},
            "indexes": {"by_n": {"n": 1}},
            "classLevelPermissions": {
                "find": {"role:Staff": True},
                "get": {"*": True},
                "create": {"requiresAuthentication": True},
                "protectedFields": {"*": ["n"]},
            },
        },
    )
    for start in range(0, 1100, 100):
        requests = [
            {
                "method": "POST",
                "path": "/parse/classes/Note",
                "body": {
                    "text": f"té {n} ☃",
                    "n": n / 4,
                    "author": ann,
                    "at": {"__type": "Date", "iso": "2020-01-01T00:00:00.123Z"},
                    "place": {"__type": "GeoPoint", "latitude": 1.5, "longitude": -2},
                    "area": {"__type": "Polygon", "coordinates": POINTS},
                    "raw": {"__type": "Bytes", "base64": "AAE="},
                    "list": [bob, 1, {"a": None}],
                    "more": {"deep": [{"er": 1.0}]},
                    "readers": adding(ann, bob),
                    "ACL": {"role:Staff": {"read": True}} if n % 2 else {},
                },
            }
            for n in range(start, start + 100)
        ]
        peer.call("POST", "/batch", {"requests": requests})
    peer.call(
        "POST", "/roles", {"name": "Staff", "ACL": {"*": {"read": True}}, "users": adding(bob)}
    )
    peer.call("PUT", "/config", {"params": {"a": 1}, "masterKeyOnly": {"a": True}})
    hook = {"functionName": "far", "url": "https://hooks.example.org/far"}
    peer.call("POST", "/hooks/functions", hook)
    audience = {"name": "beta", "query": json.dumps({"deviceType": "ios"})}
    peer.call("POST", "/push_audiences", audience)
    peer.call("POST", "/classes/_JobSchedule", {"jobName": "clean", "repeatMinutes": 60})
    return {"ann": ann["objectId"], "session": session}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peer: Peer) -> Callable[..., str]:
    monkeypatch.setenv("PARSE_APP_ID", peer.headers["X-Parse-Application-Id"])
    monkeypatch.setenv("PARSE_MASTER_KEY", peer.headers["X-Parse-Master-Key"])

    def command(source: str, *options: str) -> str:
        out = io.StringIO()
        state = str(tmp_path / "state.json")
        call_command("import_parse", source, "--state", state, *options, stdout=out, stderr=out)
        return out.getvalue()

    return command


def check(out: str, master: Api, contents: dict[str, Any]) -> None:
    assert "Everything at the source is here." in out
    assert master.get("/classes/Note", count="1", limit="0").json["count"] == 1100
    note = master.get("/classes/Note", where={"n": 0.25}).json["results"][0]
    assert note["place"] == {"__type": "GeoPoint", "latitude": 1.5, "longitude": -2}
    assert note["area"]["coordinates"] == POINTS
    assert with_token(contents["session"]).get("/users/me").json["objectId"] == contents["ann"]
    login = master.post("/loginAs", {"userId": note["list"][0]["objectId"]})
    bob = with_token(login.json["sessionToken"])
    assert len(bob.get("/classes/Note", limit="1000").json["results"]) == 550
    assert master.get("/config").json["params"] == {"a": 1}
    assert master.get("/hooks/functions/far").status == 200
    (audience,) = master.get("/push_audiences").json["results"]
    assert (audience["name"], audience["query"]) == ("beta", {"deviceType": "ios"})
    (schedule,) = master.get("/cloud_code/jobs").json
    assert (schedule["jobName"], schedule["enabled"]) == ("clean", False)
    schema = master.get("/schemas/Note").json
    assert schema["indexes"] == {"by_n": {"n": 1}}
    assert schema["classLevelPermissions"]["protectedFields"] == {"*": ["n"]}


def test_by_the_api_all_but_passwords_arrives(
    peer: Peer, contents: dict[str, Any], master: Api, client: Api, run: Callable[..., str]
) -> None:
    out = run(peer.url)
    assert "The API shows no password hashes" in out
    check(out, master, contents)
    assert client.post("/login", {"username": "user1", "password": "secret1"}).error == (404, 101)


def test_from_the_database_passwords_arrive_as_well(
    peer: Peer, contents: dict[str, Any], master: Api, client: Api, run: Callable[..., str]
) -> None:
    check(run(peer.database), master, contents)
    assert client.post("/login", {"username": "user1", "password": "secret1"}).status == 200
    assert client.post("/login", {"username": "user1", "password": "secret2"}).error == (404, 101)
