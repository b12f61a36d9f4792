"""The adapter for APNs, with a server that speaks its protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from objects.push.adapters import http2, setup
from objects.push.adapters.base import Message, Outcome
from objects.push.adapters.http2 import Http2Adapter, Http2Client
from tests.objects.push.fake_apns import (
    GARBAGE,
    HANG_UP,
    KEY_ID,
    STALL,
    TEAM,
    TOPIC,
    FakeApns,
    Received,
)
from tests.objects.push.pushing import api, install, pass_time, push, targets, work
from tests.objects.push.recorder import adapters

pytestmark = pytest.mark.django_db


def token(number: int) -> str:
    return f"{number:064x}"


@pytest.fixture
def apns(tmp_path: Path, settings: Any) -> Iterator[FakeApns]:
    fake = FakeApns(tmp_path)
    values = {
        "PUSH_ADAPTERS": {"ios": "apns"},
        "APNS_URL": fake.url,
        "APNS_KEY": fake.key_text,
        "APNS_KEY_ID": KEY_ID,
        "APNS_TEAM_ID": TEAM,
        "APNS_TOPICS": (TOPIC, "org.example.other"),
        "PUSH_CA_FILE": str(fake.certificate),
    }
    with override_settings(SERVICE={**settings.SERVICE, **values}):
        yield fake
    fake.stop()


def install_ios(count: int = 1, **fields: Any) -> list[str]:
    return [
        install(1, deviceType="ios", deviceToken=token(number), **fields)[0]
        for number in range(1, count + 1)
    ]


def test_a_notification_has_apples_form(apns: FakeApns) -> None:
    install_ios(localeIdentifier="fr", appIdentifier=TOPIC)
    data = {
        "alert": "Hello",
        "alert-fr": "Bonjour",
        "title": "Title",
        "badge": "Increment",
        "sound": "chime",
        "content-available": 1,
        "mutable-content": 1,
        "category": "c",
        "threadId": "t",
        "interruptionLevel": "active",
        "url": {"a": 1},
    }
    push_id = push(data=data, expiration_time=4_000_000_000)
    assert work(push_id)["sentPerType"] == {"ios": 1}
    (received,) = apns.received
    assert received.token == token(1)
    assert received.json == {
        "aps": {
            "alert": {"title": "Title", "body": "Bonjour"},
            "badge": 1,
            "sound": "chime",
            "content-available": 1,
            "mutable-content": 1,
            "category": "c",
            "thread-id": "t",
            "interruption-level": "active",
        },
        "url": {"a": 1},
    }
    assert len(received.headers.pop("apns-id")) == 36
    assert received.headers == {
        "apns-topic": TOPIC,
        "apns-push-type": "alert",
        "apns-collapse-id": f"push-{push_id}",
        "apns-expiration": "4000000000",
    }


def test_a_silent_push_is_one_of_the_background(apns: FakeApns) -> None:
    install_ios()
    work(push(data={"content-available": 1, "news": 3}))
    headers = apns.received[0].headers
    assert (headers["apns-push-type"], headers["apns-priority"]) == ("background", "5")
    assert apns.received[0].json == {"aps": {"content-available": 1}, "news": 3}


def test_types_of_notifications_have_topics_of_their_own(apns: FakeApns) -> None:
    install_ios()
    work(push(data={"alert": "x", "push_type": "voip", "priority": 10, "collapse_id": "c"}))
    headers = apns.received[0].headers
    assert headers["apns-topic"] == f"{TOPIC}.voip"
    assert headers["apns-collapse-id"] == "c"
    assert headers["apns-priority"] == "10"


@pytest.mark.parametrize(
    "data", [{"push_type": "x\r\ny: z"}, {"priority": 7}, {"collapse_id": "a\nb"}]
)
def test_values_that_are_no_headers_are_not_sent(apns: FakeApns, data: dict[str, Any]) -> None:
    install_ios()
    assert work(push(data=data))["numFailed"] == 1
    assert apns.received == []


def test_an_installation_cannot_choose_another_topic(apns: FakeApns) -> None:
    install_ios(appIdentifier="org.example.evil")
    work(push())
    assert apns.received[0].headers["apns-topic"] == TOPIC


@pytest.mark.parametrize("bad", ["../../../evil", "a" * 500, "zz" * 32, "x y"])
def test_a_token_that_is_none_is_not_part_of_an_address(apns: FakeApns, bad: str) -> None:
    install(1, deviceType="ios", deviceToken=bad)
    push_id = push()
    assert work(push_id)["numFailed"] == 1
    assert apns.received == []
    assert targets(push_id)[0].error == "the device token isn't one of APNs"


def test_many_go_over_few_connections_and_with_one_token(apns: FakeApns) -> None:
    install_ios(70)
    assert work(push())["numSent"] == 70
    assert len({received.token for received in apns.received}) == 70
    assert len(set(apns.provider_tokens)) == 1


def test_each_answer_has_its_consequence(apns: FakeApns) -> None:
    apns.answers = {
        token(1): (410, {"reason": "Unregistered", "timestamp": 1}),
        token(2): (400, {"reason": "BadDeviceToken"}),
        token(3): (429, {"reason": "TooManyRequests"}),
        token(4): (500, {"reason": "InternalServerError"}),
        token(5): (503, b"<html>not json"),
        token(6): (413, {"reason": "PayloadTooLarge"}),
        token(7): (400, b"\xff\xfe"),
        token(8): (403, {"reason": "InvalidProviderToken"}),
    }
    ids = install_ios(9)
    push_id = push()
    stored = work(push_id)
    assert (stored["numSent"], stored["numFailed"], stored["status"]) == (1, 4, "running")
    by_token = {int(target.device_token, 16): target for target in targets(push_id)}
    assert {number: target.error for number, target in by_token.items()} == {
        1: "APNs: 410 Unregistered",
        2: "APNs: 400 BadDeviceToken",
        3: "APNs: 429 TooManyRequests",
        4: "APNs: 500 InternalServerError",
        5: "APNs: 503",
        6: "APNs: 413 PayloadTooLarge",
        7: "APNs: 400",
        8: "APNs: 403 InvalidProviderToken",
        9: "",
    }
    assert "deviceToken" not in api.get(f"/installations/{ids[0]}").json
    assert api.get(f"/installations/{ids[1]}").json["deviceToken"] == token(2)
    first = {received.token: received.headers["apns-id"] for received in apns.received}
    apns.answers = {}
    apns.received.clear()
    pass_time(10)
    assert work(push_id)["numSent"] == 5
    # A repeated notification has the same identifiers.
    assert {received.headers["apns-id"] for received in apns.received} <= {*first.values()}
    assert len(apns.received) == 4


def test_a_pause_that_the_service_asks_for_is_kept(apns: FakeApns) -> None:
    install_ios()
    apns.headers = {"retry-after": "900"}
    apns.answers = {token(1): (429, {"reason": "TooManyRequests"})}
    push_id = push()
    work(push_id)
    apns.answers = {}
    pass_time(800)
    assert work(push_id)["numSent"] == 0
    pass_time(120)
    assert work(push_id)["numSent"] == 1


def test_an_expired_provider_token_is_replaced_at_once(apns: FakeApns) -> None:
    install_ios()
    refused: list[str] = []

    def refuse_once(received: Received) -> Any:
        if not refused:
            refused.append(apns.provider_tokens[-1])
            return 403, {"reason": "ExpiredProviderToken"}
        return None

    apns.on_request = refuse_once
    assert work(push())["numSent"] == 1
    assert apns.provider_tokens[-1] != refused[0]


@pytest.mark.parametrize("answer", [STALL, GARBAGE, HANG_UP])
def test_a_broken_service_is_tried_again(
    apns: FakeApns, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http2, "WAIT", 1.0)
    install_ios()
    apns.answers = {token(1): answer}
    push_id = push()
    assert work(push_id)["status"] == "running"
    assert targets(push_id)[0].error.startswith("APNs: ")
    apns.answers = {}
    pass_time(10)
    assert work(push_id)["numSent"] == 1


def test_a_server_with_another_certificate_gets_nothing(
    apns: FakeApns, settings: Any, tmp_path: Path
) -> None:
    install_ios()
    with override_settings(SERVICE={**settings.SERVICE, "PUSH_CA_FILE": ""}):
        push_id = push()
        work(push_id)
    assert apns.provider_tokens == []
    assert targets(push_id)[0].error.startswith("APNs: the connection failed")


@pytest.mark.parametrize("key", ["", "secret-text", "-----BEGIN PRIVATE KEY-----\nsecret\n"])
def test_a_bad_key_is_neither_logged_nor_shown(
    apns: FakeApns, settings: Any, key: str, capfd: pytest.CaptureFixture[str]
) -> None:
    install_ios()
    with override_settings(SERVICE={**settings.SERVICE, "APNS_KEY": key}):
        push_id = push()
        work(push_id)
        problems = " ".join(setup.problems())
    assert targets(push_id)[0].error == "the key for APNs can't be used"
    assert "APNS_KEY" in problems
    captured = capfd.readouterr()
    shown = captured.out + captured.err + problems + json.dumps(api.results("_PushStatus"))
    assert "secret" not in shown


def test_a_file_without_certificates_is_named(
    apns: FakeApns, settings: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    install_ios()
    problem = "PUSH_CA_FILE isn't a file of certificates in PEM form"
    with override_settings(SERVICE={**settings.SERVICE, "PUSH_CA_FILE": str(wrong)}):
        push_id = push()
        work(push_id)
        assert [*setup.problems()] == [f"{problem}."]
    assert targets(push_id)[0].error == f"APNs: {problem}"
    assert "SSLError" in capfd.readouterr().err
    pass_time(10)
    assert work(push_id)["numSent"] == 1


class BrokenAdapter(Http2Adapter):
    """Has an internal error."""

    service = "Broken"
    key = "its key"

    async def attempt(self, message: Message, client: Http2Client) -> Outcome:
        raise ValueError("a bug")


def test_an_internal_error_of_an_adapter_is_logged_once_for_a_chunk(
    capfd: pytest.CaptureFixture[str],
) -> None:
    install(3)
    with adapters(log=BrokenAdapter()):
        push_id = push()
        assert work(push_id)["status"] == "running"
    assert {target.error for target in targets(push_id)} == {
        "internal error: look for its traceback in the service's log"
    }
    logged = capfd.readouterr().err
    assert logged.count("ValueError: a bug") == 1
    assert "in attempt" in logged


def test_no_token_of_a_device_is_logged(apns: FakeApns, capfd: pytest.CaptureFixture[str]) -> None:
    apns.answers = {token(1): (400, {"reason": token(1)})}
    install_ios()
    work(push())
    captured = capfd.readouterr()
    assert token(1) not in captured.out + captured.err
