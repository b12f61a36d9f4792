"""The maintenance key: who may use it, and what it may do that no other key may."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backend.logs import setup
from tests.rest import APPLICATION, CLIENT, MAINTENANCE, MASTER, Api


@pytest.fixture
def maintenance(db: None) -> Api:
    """A caller with the maintenance key."""
    return Api(MAINTENANCE)


def date(iso: str) -> dict[str, str]:
    return {"__type": "Date", "iso": iso}


EARLIER, LATER = "2019-01-01T00:00:00.000Z", "2019-02-01T00:00:00.000Z"


def test_it_creates_objects_with_their_times(maintenance: Api, client: Api) -> None:
    body = {"text": "old", "createdAt": date(EARLIER), "updatedAt": date(LATER)}
    created = maintenance.post("/classes/Note", body)
    assert created.json["createdAt"] == EARLIER
    note = client.get(f"/classes/Note/{created.json['objectId']}").json
    assert (note["text"], note["createdAt"], note["updatedAt"]) == ("old", EARLIER, LATER)


def test_an_update_time_that_is_left_out_is_that_of_the_creation(maintenance: Api) -> None:
    created = maintenance.post("/classes/Note", {"createdAt": date(EARLIER)}).json
    assert maintenance.get(f"/classes/Note/{created['objectId']}").json["updatedAt"] == EARLIER


def test_an_update_time_alone_is_ignored(maintenance: Api) -> None:
    created = maintenance.post("/classes/Note", {"updatedAt": date(EARLIER)}).json
    note = maintenance.get(f"/classes/Note/{created['objectId']}").json
    assert note["updatedAt"] == note["createdAt"] == created["createdAt"] > LATER


def test_an_update_before_the_creation_is_an_error(maintenance: Api) -> None:
    reply = maintenance.post(
        "/classes/Note", {"createdAt": date(LATER), "updatedAt": date(EARLIER)}
    )
    assert reply.error == (400, 142)
    assert reply.json["error"] == "updatedAt cannot occur before createdAt"


@pytest.mark.parametrize("value", [12345, True, EARLIER, [EARLIER], {"iso": EARLIER}])
def test_a_time_that_is_no_date_is_an_error(maintenance: Api, value: Any) -> None:
    reply = maintenance.post("/classes/Note", {"createdAt": value})
    assert reply.error == (400, 111)
    assert reply.json["error"].startswith("schema mismatch for Note.createdAt; expected Date but")


def test_a_batch_with_it_keeps_the_times(maintenance: Api) -> None:
    items = [
        {
            "method": "POST",
            "path": "/api/classes/Note",
            "body": {"createdAt": date(f"2019-01-0{day}T00:00:00.000Z")},
        }
        for day in (1, 2, 3)
    ]
    answers = maintenance.post("/batch", {"requests": items}).json
    assert [answer["success"]["createdAt"][:10] for answer in answers] == [
        "2019-01-01",
        "2019-01-02",
        "2019-01-03",
    ]


@pytest.mark.parametrize("headers", [CLIENT, MASTER])
def test_for_other_keys_the_times_of_the_body_are_ignored(db: None, headers: Any) -> None:
    Api(MASTER).post("/schemas/Note", {})
    body = {"createdAt": date(EARLIER), "updatedAt": date(LATER), "text": "new"}
    created = Api(headers).post("/classes/Note", body)
    assert created.status == 201
    path = f"/classes/Note/{created.json['objectId']}"
    note = Api(headers).get(path).json
    assert note["createdAt"] == note["updatedAt"] > LATER
    assert Api(headers).put(path, {**body, "text": "newer"}).status == 200
    again = Api(headers).get(path).json
    assert (again["createdAt"], again["text"]) == (note["createdAt"], "newer")
    assert again["updatedAt"] > LATER


def test_an_update_keeps_the_time_of_the_creation(maintenance: Api) -> None:
    created = maintenance.post("/classes/Note", {"createdAt": date(EARLIER)}).json
    path = f"/classes/Note/{created['objectId']}"
    assert maintenance.put(path, {"createdAt": date(LATER), "a": 1}).status == 200
    note = maintenance.get(path).json
    assert note["createdAt"] == EARLIER
    assert note["updatedAt"] > LATER


def test_it_passes_access_lists_and_permissions(maintenance: Api, master: Api) -> None:
    permissions = {"find": {}, "get": {}, "create": {}, "update": {}, "delete": {}}
    master.post("/schemas/Closed", {"classLevelPermissions": permissions})
    created = maintenance.post("/classes/Closed", {"ACL": {}, "a": 1}).json
    path = f"/classes/Closed/{created['objectId']}"
    assert maintenance.get(path).json["a"] == 1
    assert maintenance.put(path, {"a": 2}).status == 200
    assert maintenance.delete(path).status == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/schemas", None),
        ("POST", "/schemas/Note", {}),
        ("DELETE", "/purge/Note", None),
        ("GET", "/aggregate/Note", None),
        ("PUT", "/config", {"params": {"a": 1}}),
        ("GET", "/serverInfo", None),
        ("GET", "/hooks/functions", None),
        ("POST", "/jobs/tidy", {}),
        ("POST", "/loginAs", {"userId": "nobody"}),
    ],
)
def test_it_is_not_the_master_key(maintenance: Api, method: str, path: str, body: Any) -> None:
    reply = maintenance.call(method, path, body)
    assert reply.error == (403, 119)
    assert reply.json["error"].startswith("unauthorized: master key is required")


def test_a_wrong_one_is_refused_beside_a_right_key(db: None) -> None:
    for key in ("wrong", "test-master-key"):
        reply = Api({**MASTER, "X-Svc-Maintenance-Key": key}).get("/classes/Note")
        assert reply.error == (403, 261)
        assert reply.json["error"] == "unauthorized: invalid maintenance key"


def test_it_can_come_in_the_body_and_under_the_alias(db: None) -> None:
    body = {
        "_ApplicationId": "test-app",
        "_MaintenanceKey": "test-maintenance-key",
        "createdAt": date(EARLIER),
    }
    assert Api({}).post("/classes/Note", body).json["createdAt"] == EARLIER
    alias = {**APPLICATION, "X-Parse-Maintenance-Key": "test-maintenance-key"}
    created = Api(alias).post("/classes/Note", {"createdAt": date(EARLIER)})
    assert created.json["createdAt"] == EARLIER


def test_only_listed_addresses_may_use_it(maintenance: Api, settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "MAINTENANCE_KEY_IPS": ("10.0.0.0/8",)}
    assert maintenance.get("/classes/Note").error == (403, 261)
    settings.SERVICE = {**settings.SERVICE, "MAINTENANCE_KEY_IPS": ("127.0.0.1/32",)}
    assert maintenance.get("/classes/Note").status == 200


def test_without_a_key_in_the_settings_there_is_none(maintenance: Api, settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "MAINTENANCE_KEY": ""}
    for key, code in (("", 262), ("test-maintenance-key", 261)):  # an empty one is a missing one
        headers = {**APPLICATION, "X-Svc-Maintenance-Key": key}
        assert Api(headers).get("/classes/Note").error == (403, code)


@pytest.fixture
def log_lines(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[[str], list[Any]]]:
    """The lines of the log with an event, while everything is logged."""

    def lines(event: str) -> list[Any]:
        written.extend(map(json.loads, capfd.readouterr().err.splitlines()))
        return [line for line in written if line["event"] == event]

    written: list[Any] = []
    setup.configure("INFO", "json", "test")
    capfd.readouterr()
    yield lines
    setup.configure("WARNING", "json", "test")


def test_every_use_of_it_is_logged(maintenance: Api, log_lines: Any) -> None:
    maintenance.get("/classes/Note")
    Api({**APPLICATION, "X-Svc-Maintenance-Key": "guess"}).get("/classes/Note")
    used, refused = log_lines("maintenance key"), log_lines("maintenance key refused")
    assert [(line["method"], line["path"]) for line in used] == [("GET", "/api/classes/Note")]
    assert [line["address"] for line in refused] == ["127.0.0.1"]
    assert "guess" not in json.dumps(refused)
