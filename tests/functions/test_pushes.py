"""``send_push``: notifications from server code."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from functions import ServiceError, TriggerRequest, after_save, before_save, send_push
from tests.objects.push.pushing import install, status, work

pytestmark = pytest.mark.django_db


def test_server_code_sends_pushes() -> None:
    install(1, channels=["news"])
    install(1)
    stored = work(send_push(channels=["news"], data={"alert": "Hello"}))
    assert (stored["source"], stored["numSent"]) == ("function", 1)
    stored = work(send_push(where={"deviceType": "android"}, data={"alert": "Hello"}))
    assert (stored["numSent"], stored["query"]) == (2, '{"deviceType":"android"}')


def test_times_are_pythons() -> None:
    moment = datetime(2030, 1, 15, 12, tzinfo=UTC)
    assert status(send_push(where={}, push_time=moment))["pushTime"] == "2030-01-15T12:00:00.000Z"
    on_clocks = moment.replace(tzinfo=None)
    assert status(send_push(where={}, push_time=on_clocks))["pushTime"] == "2030-01-15T12:00:00.000"
    assert status(send_push(where={}, expiration_time=moment))["expiry"] == 1_894_708_800_000


def test_a_trigger_learns_how_a_push_goes_on(django_capture_on_commit_callbacks: Any) -> None:
    states = []

    @after_save("_PushStatus")
    def note(request: TriggerRequest) -> None:
        states.append((request.object["status"], request.object["numSent"]))

    install(1)
    with django_capture_on_commit_callbacks(execute=True):
        work(send_push(where={}))
    assert states[0] == ("pending", 0)
    assert states[-1] == ("succeeded", 1)
    with pytest.raises(ValueError, match="_PushStatus has no trigger before_save"):
        before_save("_PushStatus")(note)


def test_a_push_that_cannot_be_sent_is_an_error() -> None:
    with pytest.raises(ServiceError) as raised:
        send_push(where={}, channels=["news"])
    assert raised.value.code == 115
