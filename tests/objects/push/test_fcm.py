"""The adapter for FCM, with a server that gives access tokens and takes messages."""

from __future__ import annotations

import gzip
import json
import resource
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from objects.push.adapters import http2, setup
from tests.objects.push.fake_fcm import FakeFcm, error
from tests.objects.push.pushing import api, install, pass_time, push, targets, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def fcm(settings: Any) -> Iterator[FakeFcm]:
    fake = FakeFcm()
    values = {
        "PUSH_ADAPTERS": {"android": "fcm", "ios": "fcm"},
        "FCM_URL": fake.url,
        "FCM_SERVICE_ACCOUNT": fake.account,
    }
    with override_settings(SERVICE={**settings.SERVICE, **values}):
        yield fake
    fake.stop()


def test_a_message_has_the_form_of_parses_android_sdk(fcm: FakeFcm) -> None:
    install(1)
    data = {"alert": "Hello", "badge": 3, "content-available": 1, "extra": {"a": [1]}}
    push_id = push(data=data, expiration_time=4_000_000_000, notification={"title": "T"})
    assert work(push_id)["sentPerType"] == {"android": 1}
    (message,) = fcm.received
    assert message["token"] == "token-0"
    android = message["android"]
    assert json.loads(android["data"].pop("data")) == {"alert": "Hello", "extra": {"a": [1]}}
    assert android["data"].pop("push_id") == push_id
    assert android["data"].pop("time").endswith("Z")
    assert android == {
        "priority": "high",
        "data": {},
        "notification": {"title": "T"},
        "ttl": "2419200s",
    }


def test_apple_devices_get_apples_form(fcm: FakeFcm) -> None:
    install(1, deviceType="ios")
    push_id = push(data={"alert": "Hello", "title": "T", "badge": "Increment"})
    assert work(push_id)["numSent"] == 1
    assert fcm.received[0]["apns"] == {
        "headers": {"apns-push-type": "alert", "apns-collapse-id": f"push-{push_id}"},
        "payload": {"aps": {"alert": {"title": "T", "body": "Hello"}, "badge": 1}},
    }


def test_a_raw_payload_is_sent_as_it_is(fcm: FakeFcm) -> None:
    install(1)
    work(push(rawPayload={"notification": {"body": "x"}, "token": "another"}))
    assert fcm.received == [{"notification": {"body": "x"}, "token": "token-0"}]


def test_one_access_token_serves_all(fcm: FakeFcm) -> None:
    install(60)
    assert work(push())["numSent"] == 60
    assert fcm.logins == 1


def test_an_access_token_that_ended_is_replaced(fcm: FakeFcm) -> None:
    install(1)
    work(push())
    fcm.valid.clear()
    assert work(push())["numSent"] == 1
    assert fcm.logins == 2


def test_each_answer_has_its_consequence(fcm: FakeFcm) -> None:
    ids = install(7)
    fcm.answers = {
        "token-0": error(404, "UNREGISTERED", "NOT_FOUND"),
        "token-1": error(400, "INVALID_ARGUMENT"),
        "token-2": error(429, "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED"),
        "token-3": error(503, "UNAVAILABLE", "UNAVAILABLE"),
        "token-4": error(403, "SENDER_ID_MISMATCH", "PERMISSION_DENIED"),
        "token-5": (500, b"<html>"),
    }
    push_id = push()
    stored = work(push_id)
    assert (stored["numSent"], stored["numFailed"]) == (1, 3)
    errors = {target.device_token: target.error for target in targets(push_id)}
    assert errors == {
        "token-0": "FCM: 404 UNREGISTERED",
        "token-1": "FCM: 400 INVALID_ARGUMENT",
        "token-2": "FCM: 429 QUOTA_EXCEEDED",
        "token-3": "FCM: 503 UNAVAILABLE",
        "token-4": "FCM: 403 SENDER_ID_MISMATCH",
        "token-5": "FCM: 500",
        "token-6": "",
    }
    assert "deviceToken" not in api.get(f"/installations/{ids[0]}").json
    assert "deviceToken" in api.get(f"/installations/{ids[1]}").json
    fcm.answers = {}
    pass_time(10)
    assert work(push_id)["numSent"] == 4


@pytest.mark.parametrize(
    "answer",
    [
        (400, {"error": "invalid_grant"}),
        (200, b"garbage"),
        (200, {"access_token": 5}),
        (200, {"access_token": "t\r\nx"}),
        (200, b"x" * 200_000),
        (302, b""),
        (0, "stall"),
    ],
)
def test_without_an_access_token_it_is_tried_again(
    fcm: FakeFcm, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http2, "WAIT", 1.0)
    install(1)
    fcm.login_answer = answer
    push_id = push()
    assert work(push_id)["status"] == "running"
    assert targets(push_id)[0].error.startswith("FCM: ")
    fcm.login_answer = None
    pass_time(10)
    assert work(push_id)["numSent"] == 1


@pytest.mark.parametrize("answer", [(0, "stall"), (200, b"x" * 200_000)])
def test_a_message_without_a_usable_answer_is_tried_again(
    fcm: FakeFcm, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http2, "WAIT", 1.0)
    install(1)
    fcm.answers = {"token-0": answer}
    push_id = push()
    assert work(push_id)["status"] == "running"
    assert targets(push_id)[0].error.startswith("FCM: ")


@pytest.mark.slow
def test_compressed_responses_are_not_decompressed(fcm: FakeFcm) -> None:
    """1.5 KB become 1 GB, or more if the service compresses them once more."""
    zeros = bytes(2**20)
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    once = b"".join(compressor.compress(zeros) for _ in range(1024)) + compressor.flush()
    fcm.answers = {"token-0": (200, gzip.compress(once, 9))}
    install(1)
    work(push())  # which gets an access token
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for encoding in ("gzip, gzip", "gzip", "deflate", "br", "x"):
        fcm.headers = {"Content-Encoding": encoding}
        push_id = push()
        assert work(push_id)["status"] == "running"
        assert targets(push_id)[0].error == "FCM: its response is compressed"
    fcm.valid.clear()  # so the next response is that of the endpoint for tokens
    push_id = push()
    work(push_id)
    assert targets(push_id)[0].error == "FCM: its response is compressed"
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert kibibytes < 16 * 1024
    assert fcm.accepted_encodings == {"identity"}


def test_a_response_may_name_the_encoding_of_none(fcm: FakeFcm) -> None:
    fcm.headers = {"Content-Encoding": "identity"}
    install(1)
    assert work(push())["numSent"] == 1


@pytest.mark.parametrize(
    "account",
    ["", "{", '{"private_key": "secret-text"}', '["secret-text"]'],
)
def test_a_bad_account_is_neither_logged_nor_shown(
    fcm: FakeFcm, settings: Any, account: str, capfd: pytest.CaptureFixture[str]
) -> None:
    install(1)
    with override_settings(SERVICE={**settings.SERVICE, "FCM_SERVICE_ACCOUNT": account}):
        push_id = push()
        work(push_id)
        problems = " ".join(setup.problems())
    assert targets(push_id)[0].error == "the service account for FCM can't be used"
    assert "FCM_SERVICE_ACCOUNT" in problems
    captured = capfd.readouterr()
    assert "secret-text" not in captured.out + captured.err + problems


@pytest.mark.parametrize("address", ["http://169.254.169.254/token", "https://[broken/token"])
def test_an_account_cannot_name_any_address(fcm: FakeFcm, settings: Any, address: str) -> None:
    account = json.loads(fcm.account) | {"token_uri": address}
    install(1)
    service = {**settings.SERVICE, "FCM_SERVICE_ACCOUNT": json.dumps(account)}
    with override_settings(SERVICE=service):
        push_id = push()
        work(push_id)
    assert targets(push_id)[0].error == "the service account for FCM can't be used"
