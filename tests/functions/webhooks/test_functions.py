"""Functions that are webhooks: what is sent, and what becomes of the answer."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from contextlib import ExitStack
from typing import Any

import psutil
import pytest

from functions import Request, function
from functions.webhooks import client as http
from functions.webhooks import signatures
from tests.functions.webhooks.receiver import Receiver
from tests.people import sign_up
from tests.polling import until
from tests.rest import Api

DATE = {"__type": "Date", "iso": "2026-01-02T03:04:05.678Z"}
POINTER = {"__type": "Pointer", "className": "Game", "objectId": "abcdefghij"}
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def declare(master: Api, url: str, name: str = "greet") -> None:
    reply = master.post("/hooks/functions", {"functionName": name, "url": url})
    assert reply.status == 200, reply.json


def test_the_result_is_what_the_webhook_answers(
    master: Api, application: Api, receiver: Receiver
) -> None:
    declare(master, receiver.on("/greet", lambda item: {"success": item.json["params"]}))
    reply = application.post("/functions/greet", {"name": "Ann", "at": DATE, "of": POINTER})
    assert reply.json == {"result": {"name": "Ann", "at": DATE, "of": POINTER}}
    assert receiver.received[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", "text", [], {}, [DATE], {"a": POINTER}])
def test_any_value_is_a_success(master: Api, receiver: Receiver, value: Any) -> None:
    declare(master, receiver.on("/greet", {"success": value}))
    assert master.post("/functions/greet").json == {"result": value}


def test_the_webhook_is_told_who_calls(master: Api, receiver: Receiver) -> None:
    declare(master, receiver.on("/greet", {"success": 1}))
    ann = sign_up("ann", city="Ulm")
    ann.headers |= {
        "X-Svc-Installation-Id": "phone-1",
        "X-Svc-Cloud-Context": '{"step": 1}',
        "X-Colour": "blue",
    }
    ann.post("/functions/greet", {"a": 1})
    (body,) = (item.json for item in receiver.received)
    assert body["functionName"] == "greet"
    assert body["params"] == {"a": 1}
    assert body["master"] is False
    assert body["installationId"] == "phone-1"
    assert body["context"] == {"step": 1}
    assert body["headers"]["x-colour"] == "blue"
    assert body["ip"] == "127.0.0.1"
    user = body["user"]
    assert (user["objectId"], user["username"], user["city"]) == (ann.user_id, "ann", "Ulm")
    assert user["className"] == "_User"


def test_no_key_token_or_password_is_sent(master: Api, receiver: Receiver) -> None:
    declare(master, receiver.on("/greet", {"success": 1}))
    ann = sign_up("ann")
    ann.headers["Authorization"] = "Bearer something"
    ann.post("/functions/greet")
    (request,) = receiver.received
    for secret in (ann.token, "test-rest-key", "correct horse", "Bearer something"):
        assert secret.encode() not in request.raw
        assert secret not in str(request.headers)


def test_the_master_key_is_told_of_and_the_read_only_one_is_not_it(
    master: Api, reader: Api, receiver: Receiver
) -> None:
    declare(master, receiver.on("/greet", {"success": 1}))
    master.post("/functions/greet")
    reader.post("/functions/greet")
    flags = [(item.json["master"], item.json["isReadOnly"]) for item in receiver.received]
    assert flags == [(True, False), (False, True)]


def test_an_error_is_the_caller_s(master: Api, client: Api, receiver: Receiver) -> None:
    declare(master, receiver.on("/greet", {"error": "not today"}))
    reply = client.post("/functions/greet")
    assert (reply.status, reply.json) == (400, {"code": 141, "error": "not today"})


@pytest.mark.parametrize(
    ("error", "status", "code", "text"),
    [
        ({"code": 1337, "error": "hacking that one!"}, 400, 1337, "hacking that one!"),
        ({"code": 101, "message": "nothing here"}, 404, 101, "nothing here"),
        ({"code": 1, "error": "ours"}, 400, 141, "ours"),
        ({"code": "x", "error": "text"}, 400, 141, "text"),
        ({"code": True, "error": "text"}, 400, 141, "text"),
        ({"code": 10**30, "error": "text"}, 400, 141, "text"),
        ({"code": 5}, 400, 5, "The webhook gave no reason."),
        ([1], 400, 141, "The webhook gave no reason."),
        ("x" * 5000, 400, 141, "x" * 1000),
    ],
)
def test_an_error_may_have_a_code(
    master: Api, receiver: Receiver, error: Any, status: int, code: int, text: str
) -> None:
    declare(master, receiver.on("/greet", {"error": error}, status=500))
    reply = master.post("/functions/greet")
    assert (reply.status, reply.json) == (status, {"code": code, "error": text})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"raw": b"<html>"}, "its response is not JSON"),
        ({"raw": b"[" * 100_000}, "its response is not JSON"),
        ({"raw": b"\xff\xfe"}, "its response is not JSON"),
        ({"raw": b"", "status": 500}, "it responded with status 500"),
        ({"body": {"success": 1}, "status": 500}, "it responded with status 500"),
        ({"body": {"success": 1}, "status": 302}, "it responded with status 302"),
    ],
)
def test_an_answer_that_is_none_is_141_and_names_the_function(
    master: Api, receiver: Receiver, answer: dict[str, Any], reason: str
) -> None:
    url = receiver.on("/greet?token=secret", **answer)
    declare(master, url)
    reply = master.post("/functions/greet")
    assert reply.error == (400, 141)
    assert reply.json["error"] == f"The webhook for the function greet failed: {reason}."


@pytest.mark.parametrize("raw", [b"", b" \n", b"{}", b"[1]", b"null", b'{"error": null}'])
def test_an_answer_without_success_and_error_is_a_success_without_a_result(
    master: Api, receiver: Receiver, raw: bytes
) -> None:
    declare(master, receiver.on("/greet", raw=raw))
    reply = master.post("/functions/greet")
    assert (reply.status, reply.json) == (200, {})


def test_a_result_of_null_is_one(master: Api, receiver: Receiver) -> None:
    declare(master, receiver.on("/greet", {"success": None}))
    assert master.post("/functions/greet").json == {"result": None}


def test_parameters_of_the_query_string_are_texts_and_go_before_others(
    master: Api, receiver: Receiver
) -> None:
    declare(master, receiver.on("/greet", lambda item: {"success": item.json["params"]}))
    reply = master.post("/functions/greet?option=1&other=2", {"foo": "bar", "other": 1})
    assert reply.json == {"result": {"foo": "bar", "option": "1", "other": "2"}}


def test_redirects_are_not_followed(master: Api, receiver: Receiver) -> None:
    elsewhere = receiver.on("/elsewhere", {"success": "inside"})
    declare(master, receiver.on("/greet", {}, status=307, Location=elsewhere))
    assert master.post("/functions/greet").error == (400, 141)
    assert [item.path for item in receiver.received] == ["/greet"]


def test_an_answer_has_a_size(master: Api, receiver: Receiver, settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "MAX_BODY_SIZE": 10_000}
    declare(master, receiver.on("/greet", {"success": "x" * 20_000}))
    reply = master.post("/functions/greet")
    assert reply.error == (400, 141)
    assert reply.json["error"].endswith("its response is too large.")


def test_keys_prove_where_a_webhook_comes_from(
    master: Api, receiver: Receiver, settings: Any
) -> None:
    declare(master, receiver.on("/greet", {"success": 1}))
    master.post("/functions/greet")
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_KEY": "hook-key", "WEBHOOK_SECRET": SECRET}
    master.post("/functions/greet")
    plain, proven = (item for item in receiver.received)
    assert not {"x-svc-webhook-key", "x-parse-webhook-key", "webhook-signature"} & set(
        plain.headers
    )
    assert proven.headers["x-svc-webhook-key"] == proven.headers["x-parse-webhook-key"]
    assert proven.headers["x-svc-webhook-key"] == "hook-key"
    key, moment = proven.headers["webhook-id"], proven.headers["webhook-timestamp"]
    assert abs(int(moment) - time.time()) < 60
    signed = hmac.digest(bytes(range(32)), f"{key}.{moment}.".encode() + proven.raw, hashlib.sha256)
    assert proven.headers["webhook-signature"] == f"v1,{base64.b64encode(signed).decode()}"
    assert plain.headers["webhook-id"] != key


def test_while_a_secret_is_replaced_both_sign(
    master: Api, receiver: Receiver, settings: Any
) -> None:
    declare(master, receiver.on("/greet", {"success": 1}))
    new = "whsec_" + base64.b64encode(bytes(32)).decode()
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_SECRET": f"{new},{SECRET}"}
    master.post("/functions/greet")
    (request,) = receiver.received
    key, moment = request.headers["webhook-id"], request.headers["webhook-timestamp"]
    first, second = request.headers["webhook-signature"].split(" ")
    assert first == signatures.signature(new, key, moment, request.raw)
    assert second == signatures.signature(SECRET, key, moment, request.raw)


def test_a_changed_address_and_a_removed_function_hold_at_once(
    master: Api, receiver: Receiver
) -> None:
    declare(master, receiver.on("/one", {"success": 1}))
    assert master.post("/functions/greet").json == {"result": 1}
    master.put("/hooks/functions/greet", {"url": receiver.on("/two", {"success": 2})})
    assert master.post("/functions/greet").json == {"result": 2}
    master.delete("/hooks/functions/greet")
    reply = master.post("/functions/greet")
    assert reply.json == {"code": 141, "error": 'Invalid function: "greet"'}


def test_python_functions_call_webhooks(master: Api, receiver: Receiver) -> None:
    declare(master, receiver.on("/greet", lambda item: {"success": item.json["params"]["at"]}))

    @function()
    def outer(request: Request) -> str:
        from datetime import UTC, datetime

        moment = request.call("greet", at=datetime(2026, 1, 2, tzinfo=UTC))
        return f"{moment:%Y}"

    assert master.post("/functions/outer").json == {"result": "2026"}


def test_webhooks_are_called_in_a_batch(master: Api, receiver: Receiver) -> None:
    declare(master, receiver.on("/greet", {"success": 1}))
    requests = [{"method": "POST", "path": "/api/functions/greet", "body": {}}] * 2
    answers = master.post("/batch", {"requests": requests}).json
    assert answers == [{"success": {"result": 1}}] * 2


def test_each_call_has_a_connection_of_its_own(master: Api, receiver: Receiver) -> None:
    """A second response on a connection would be taken for that of the next call."""
    declare(master, receiver.on("/greet", {"success": 1}))
    for _ in range(3):
        assert master.post("/functions/greet").json == {"result": 1}
    assert len({item.connection for item in receiver.received}) == 3


def test_no_connection_stays_open(settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_ALLOW_PRIVATE": ("127.0.0.0/8",)}
    with ExitStack() as running:
        ports = set()
        for _ in range(5):
            receiver = Receiver()
            running.callback(receiver.stop)
            ports.add(receiver.port)
            assert http.post(receiver.on("/", {}), b"{}", {}).status == 200

        def open_connections() -> int:
            connections = psutil.Process().net_connections("tcp4")
            return sum(bool(each.raddr) and each.raddr.port in ports for each in connections)

        until(lambda: open_connections() == 0, 30)


@pytest.mark.django_db
def test_a_name_that_is_none_costs_no_query(master: Api, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert master.post("/functions/no;name").error == (400, 141)
