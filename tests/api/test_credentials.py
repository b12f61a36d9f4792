"""Credentials and how they are refused (specification section 5, clarifications section 2)."""

from __future__ import annotations

import base64

import pytest

from tests.rest import APPLICATION, CLIENT, MASTER, Api

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _a_class() -> None:
    Api(MASTER).make("Game", score=1)


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize("headers", [{}, {"X-Svc-Application-Id": "other"}])
def test_a_missing_or_wrong_application_id_is_refused(headers):
    reply = Api({"X-Svc-REST-API-Key": "test-rest-key", **headers}).get("/classes/Game")
    assert reply.status == 403
    assert reply.json == {"code": 260, "error": "unauthorized: invalid application id"}


@pytest.mark.parametrize("headers", [{}, CLIENT])
def test_a_wrong_master_key_is_refused_whatever_else_is_right(headers):
    reply = Api({**APPLICATION, **headers, "X-Svc-Master-Key": "wrong"}).get("/classes/Game")
    assert reply.status == 403
    assert reply.json == {"code": 261, "error": "unauthorized: invalid master key"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Svc-REST-API-Key": "wrong"},
        {"X-Svc-JavaScript-Key": "wrong"},
        {"X-Svc-Client-Key": ""},
        {"X-Parse-Windows-Key": "wrong"},
    ],
)
def test_without_a_valid_client_key_it_is_refused(headers):
    reply = Api({**APPLICATION, **headers}).get("/classes/Game")
    assert reply.error == (403, 262)
    # Parse's text alone for a wrong key; apps compare it.
    reason = "" if any(headers.values()) else ": a valid client key is required"
    assert reply.json["error"] == f"unauthorized{reason}"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Svc-REST-API-Key": "test-rest-key"},
        {"X-Svc-JavaScript-Key": "test-javascript-key"},
        {"X-Svc-Client-Key": "test-client-key"},
        {"X-Parse-Windows-Key": "test-client-key"},
        {"X-Svc-Master-Key": "test-master-key"},
        {"X-Svc-Master-Key": "test-read-only-key"},
    ],
)
def test_each_key_is_enough_to_read(headers):
    assert Api({**APPLICATION, **headers}).get("/classes/Game").status == 200


def test_parse_headers_are_an_alias():
    headers = {"X-Parse-Application-Id": "test-app", "X-Parse-REST-API-Key": "test-rest-key"}
    assert Api(headers).get("/classes/Game").status == 200


def test_parse_headers_can_be_switched_off(settings):
    settings.SERVICE = {**settings.SERVICE, "PARSE_HEADERS": False}
    headers = {"X-Parse-Application-Id": "test-app", "X-Parse-REST-API-Key": "test-rest-key"}
    assert Api(headers).get("/classes/Game").error == (403, 260)


def test_http_basic_with_the_master_key():
    assert Api(basic("test-app", "test-master-key")).get("/schemas").status == 200


def test_http_basic_with_a_wrong_master_key():
    assert Api(basic("test-app", "wrong")).get("/schemas").error == (403, 261)


def test_http_basic_with_a_javascript_key():
    api = Api(basic("test-app", "javascript-key=test-javascript-key"))
    assert api.get("/classes/Game").status == 200


def test_credentials_in_the_body_as_sdks_send_them():
    body = {
        "_ApplicationId": "test-app",
        "_JavaScriptKey": "test-javascript-key",
        "_ClientVersion": "js8.6.0",
        "_InstallationId": "5f8a2d8e-0000-4000-8000-000000000000",
        "_method": "GET",
        "where": {"score": 1},
    }
    reply = Api().call("POST", "/classes/Game", body, content_type="text/plain")
    assert reply.status == 200
    assert [game["score"] for game in reply.json["results"]] == [1]


def test_credentials_in_the_body_are_not_fields_of_the_object():
    body = {"_ApplicationId": "test-app", "_MasterKey": "test-master-key", "score": 5}
    object_id = Api().post("/classes/Game", body).json["objectId"]
    stored = Api(MASTER).get(f"/classes/Game/{object_id}").json
    assert set(stored) == {"objectId", "createdAt", "updatedAt", "score"}


def test_credentials_in_the_body_do_not_add_to_those_in_headers():
    body = {"_MasterKey": "test-master-key", "className": "Other"}
    assert Api(CLIENT).post("/schemas", body).error == (403, 119)


@pytest.mark.parametrize("value", [{"$ne": None}, ["test-app"], 7, True])
def test_a_credential_in_the_body_must_be_text(value):
    body = {"_ApplicationId": "test-app", "_MasterKey": value, "score": 5}
    assert Api().post("/classes/Game", body).error == (400, 107)


def test_an_unknown_session_token_is_refused():
    api = Api({**CLIENT, "X-Svc-Session-Token": "r:0123456789abcdef0123456789abcdef"})
    assert api.get("/classes/Game").error == (400, 209)


def test_the_session_token_is_not_looked_at_with_the_master_key():
    api = Api({**MASTER, "X-Svc-Session-Token": "r:unknown"})
    assert api.get("/classes/Game").status == 200


def test_the_master_key_is_refused_from_elsewhere(settings):
    settings.SERVICE = {**settings.SERVICE, "MASTER_KEY_IPS": ("10.0.0.0/8",)}
    assert Api(MASTER).get("/classes/Game").error == (403, 261)
    settings.SERVICE = {**settings.SERVICE, "MASTER_KEY_IPS": ("127.0.0.1/32",)}
    assert Api(MASTER).get("/classes/Game").status == 200


def test_an_unset_key_lets_no_one_in(settings):
    settings.SERVICE = {**settings.SERVICE, "READ_ONLY_MASTER_KEY": "", "CLIENT_KEY": ""}
    assert Api({**APPLICATION, "X-Svc-Master-Key": ""}).get("/classes/Game").error == (403, 262)
    assert Api({**APPLICATION, "X-Svc-Client-Key": ""}).get("/classes/Game").error == (403, 262)


@pytest.mark.parametrize("name", ["Session-Token", "Master-Key", "Maintenance-Key"])
def test_an_empty_credential_is_a_missing_one(name):
    body = {"_ApplicationId": "test-app", "_RestAPIKey": "test-rest-key", "_method": "GET"}
    in_body = Api().post("/classes/Game", {**body, f"_{name.replace('-', '')}": ""})
    replies = [
        in_body,
        *(
            Api({**CLIENT, f"X-{prefix}-{name}": ""}).get("/classes/Game")
            for prefix in ("Svc", "Parse")
        ),
    ]
    assert [reply.status for reply in replies] == [200, 200, 200]
    assert Api({**CLIENT, f"X-Svc-{name}": ""}).get("/schemas").error == (403, 119)


def test_an_empty_header_leaves_the_word_to_its_alias():
    headers = {**APPLICATION, "X-Svc-Master-Key": "", "X-Parse-Master-Key": "test-master-key"}
    assert Api(headers).get("/schemas").status == 200


@pytest.mark.parametrize("path", ["/schemas", "/schemas/Game", "/aggregate/Game"])
def test_routes_for_the_master_key_refuse_a_client(path):
    reply = Api(CLIENT).get(path)
    assert reply.error == (403, 119)


def test_the_read_only_master_key_reads_and_writes_nothing(reader):
    object_id = reader.results("Game")[0]["objectId"]
    assert reader.get("/schemas").status == 200
    for reply in (
        reader.post("/classes/Game", {"score": 2}),
        reader.put(f"/classes/Game/{object_id}", {"score": 2}),
        reader.delete(f"/classes/Game/{object_id}"),
        reader.post("/schemas/Other", {}),
        reader.put("/schemas/Game", {"fields": {"x": {"type": "String"}}}),
        reader.delete("/schemas/Game"),
        reader.delete("/purge/Game"),
    ):
        assert reply.error == (400, 119)
    batch = reader.post(
        "/batch",
        {"requests": [{"method": "DELETE", "path": f"/api/classes/Game/{object_id}"}]},
    )
    assert batch.json[0]["error"]["code"] == 119
    assert [game["score"] for game in reader.results("Game")] == [1]


READ_ONLY = [
    ("POST", "/classes/Game", {}, "perform the create operation."),
    ("PUT", "/classes/Game/abcdefghij", {}, "perform the update operation."),
    ("DELETE", "/classes/Game/abcdefghij", None, "perform the delete operation."),
    ("POST", "/users", {"username": "a", "password": "b"}, None),
    ("PUT", "/users/abcdefghij", {"a": 1}, None),
    ("DELETE", "/users/abcdefghij", None, None),
    ("POST", "/roles", {"name": "a", "ACL": {}}, "perform the create operation."),
    ("POST", "/installations", {"installationId": "i", "deviceType": "ios"}, None),
    ("POST", "/sessions", {}, None),
    ("POST", "/schemas/Other", {}, "create a schema."),
    ("PUT", "/schemas/Game", {}, "update a schema."),
    ("DELETE", "/schemas/Game", None, "delete a schema."),
    ("DELETE", "/purge/Game", None, "purge a schema."),
    ("PUT", "/config", {"params": {"a": 1}}, "update the config."),
    ("POST", "/hooks/functions", {"functionName": "f", "url": "https://e.org"}, "create a hook."),
    ("PUT", "/hooks/functions/f", {"url": "https://e.org"}, "modify a hook."),
    ("PUT", "/hooks/functions/f", {"__op": "Delete"}, "modify a hook."),
    ("POST", "/jobs/tidy", {}, "run a job."),
    ("POST", "/loginAs", {"userId": "abcdefghij"}, "login as another user."),
    ("POST", "/files/a.txt", "text", "create a file."),
    ("DELETE", "/files/a.txt", None, "delete a file."),
]


@pytest.mark.parametrize(("method", "path", "body", "text"), READ_ONLY)
def test_every_route_that_writes_refuses_the_read_only_master_key(
    master, reader, method, path, body, text
):
    before = master.get("/schemas").json
    reply = reader.call(method, path, body)
    assert reply.json["code"] == 119, reply.json
    if text is not None:
        assert reply.json["error"] == f"read-only masterKey isn't allowed to {text}"
    assert master.get("/schemas").json == before
