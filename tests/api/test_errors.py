"""Every answer that is no success is ``{"code": int, "error": str}``."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.rest import CLIENT, MASTER, Api


def test_an_unknown_route_is_404(client):
    assert client.get("/nowhere").error == (404, 108)
    assert client.get("/classes").error == (404, 108)
    assert client.get("").error == (404, 108)


def test_a_method_that_a_route_lacks_is_405(client):
    reply = client.call("DELETE", "/classes/Game")
    assert reply.error == (405, 108)
    assert reply.headers["Allow"] == "GET, POST"
    assert client.call("PATCH", "/classes/Game").error == (405, 108)


def test_another_media_type_is_415(client):
    reply = client.call("POST", "/classes/Game", raw=b"<a/>", content_type="application/xml")
    assert reply.error == (415, 108)


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[1]",
        b'"text"',
        b"null",
        b'{"a": NaN}',
        b'{"a": 1e400}',
        b'{"a": "\xff"}',
        b'{"a": 1} trailing',
        b"\x00",
        b"[" * 100_000,
        b'{"a":' * 20_000,
    ],
)
def test_a_body_that_is_no_json_object_is_107(client, raw):
    reply = client.call("POST", "/classes/Game", raw=raw)
    assert reply.error == (400, 107)


def test_a_body_that_is_too_large_is_413(client, settings):
    settings.SERVICE = {**settings.SERVICE, "MAX_BODY_SIZE": 100}
    assert client.post("/classes/Game", {"a": "x" * 200}).error == (413, 116)


def test_nul_and_lone_surrogates_are_refused(master):
    assert master.call("POST", "/classes/Game", raw=b'{"a": "\\u0000"}').status == 400
    assert master.call("POST", "/classes/Game", raw=b'{"a": "\\ud800"}').status == 400


def test_a_wrong_method_override_is_refused(client):
    assert client.post("/classes/Game", {"_method": "PATCH"}).error == (400, 107)
    assert client.post("/classes/Game", {"_method": {"a": 1}}).error == (400, 107)


@pytest.mark.django_db(transaction=True)
def test_a_fault_of_ours_is_a_neutral_500_with_a_request_id(master):
    master.make("Game", score=1)
    with connection.cursor() as cursor:
        # What should never happen: the class is there, its table is gone.
        cursor.execute("SELECT 'DROP TABLE objects_object_' || id FROM objects_class")
        cursor.execute(cursor.fetchone()[0])
    reply = master.call("GET", "/classes/Game", headers={"X-Request-Id": "request-12345678"})
    assert reply.status == 500
    assert reply.json == {
        "code": 1,
        "error": "Internal server error. Request id: request-12345678",
    }
    assert reply.headers["X-Request-Id"] == "request-12345678"


def test_every_answer_has_a_request_id(client):
    assert client.get("/health").headers["X-Request-Id"]
    assert client.get("/nowhere").headers["X-Request-Id"]


def test_health_needs_no_header(client):
    reply = Api().get("/health")
    assert (reply.status, reply.json) == (200, {"status": "ok"})


def test_a_preflight_request_is_answered(client):
    reply = Api().call(
        "OPTIONS",
        "/classes/Game",
        headers={
            "Origin": "https://app.example",
            "Access-Control-Request-Method": "PUT",
            "Access-Control-Request-Headers": "x-parse-application-id,content-type",
        },
    )
    assert reply.status == 200
    assert reply.headers["Access-Control-Allow-Origin"] == "*"
    assert "PUT" in reply.headers["Access-Control-Allow-Methods"]


def test_a_browser_may_read_answers_and_errors():
    for headers in (CLIENT, {}):
        reply = Api(headers).call("GET", "/nowhere", headers={"Origin": "https://app.example"})
        assert reply.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize(
    "text",
    [
        r'{"s": "\ud83d"}',
        r'{"s": "\ud83d and more text"}',
        r'{"s": "\ud83d\u0041 and more text"}',
        r'{"s": "\udc00"}',
        r'{"\ud83d": 1}',
        r'{"s": "\\\ud83d"}',
        r'["\ud83d\n"',
    ],
)
def test_half_of_a_surrogate_pair_is_named(client, text):
    reply = client.call("POST", "/classes/Game", raw=text.encode())
    assert reply.error == (400, 107)
    assert "half of a surrogate pair" in reply.json["error"]


@pytest.mark.parametrize("text", ['{"s": "a', r'{"s": "\\ud83d', r'{"s": "\ud83d\ude00'])
def test_json_that_ends_early_is_called_truncated(client, text):
    reply = client.call("POST", "/classes/Game", raw=text.encode())
    assert reply.error == (400, 107)
    assert "truncated" in reply.json["error"]


@pytest.mark.parametrize("query", ["where=%ff", "a&" * 200])
def test_an_odd_query_string_is_a_clear_400(master, query):
    assert master.call("GET", f"/classes/Game?{query}").status == 400


@pytest.mark.parametrize(
    "path", ["/classes/Game/%00", "/classes/%F0%9F%98%80", "/classes/Game/' OR 1=1 --"]
)
def test_an_odd_path_is_no_fault_of_ours(path, db):
    assert 400 <= Api(MASTER).call("GET", path).status < 500
