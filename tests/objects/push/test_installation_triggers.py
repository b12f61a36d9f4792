"""What triggers around finds of ``_Installation`` change of pushes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from functions import FindRequest, after_find, before_find
from functions.runtime.registry import registry
from objects.push import expansion
from objects.push.models import Push
from tests.objects.push.pushing import api, install, push, work
from tests.objects.push.recorder import Recorder

pytestmark = pytest.mark.django_db

LONGEST = 20  # pages


@pytest.fixture(autouse=True)
def own_registrations(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(expansion, "PAGE", 4)
    with registry.temporarily():
        yield


def send_to_all(**body: Any) -> dict[str, Any]:
    """Send a push and return its status; a push without an end is a failure."""
    push_id = push(**body)
    for _ in range(LONGEST):
        if not expansion.expand(push_id):
            return work(push_id)
    raise AssertionError("Its pages have no end.")


def test_what_a_trigger_drops_ends_no_push(recorder: Recorder) -> None:
    install(11)

    @after_find("_Installation")
    def drop(request: FindRequest) -> Any:
        assert request.results is not None
        return [result for result in request.results if result["deviceToken"] != "token-0"]

    assert send_to_all()["numSent"] == 10
    assert "token-0" not in recorder.tokens


def test_a_page_of_which_nothing_is_left_ends_no_push(recorder: Recorder) -> None:
    ids = sorted(install(11))

    @after_find("_Installation")
    def drop(request: FindRequest) -> Any:
        assert request.results is not None
        return [result for result in request.results if result.id not in ids[:8]]

    assert send_to_all()["numSent"] == 3


def test_objects_that_a_trigger_returns_on_each_page_are_sent_to_once(recorder: Recorder) -> None:
    install(6)
    every = api.results("_Installation")

    @after_find("_Installation")
    def all_of_them(request: FindRequest) -> Any:
        return every

    assert send_to_all(data={"badge": "Increment"})["numSent"] == 6
    assert {message.data["badge"] for message in recorder.messages} == {1}
    assert len(recorder.messages) == 6


@pytest.mark.parametrize("count", [3, 4, 9])
def test_objects_that_a_trigger_supplies_are_sent_to_once(recorder: Recorder, count: int) -> None:
    install(10)
    supplied = api.results("_Installation")[:count]

    @before_find("_Installation")
    def supply(request: FindRequest) -> Any:
        return supplied

    assert send_to_all()["numSent"] == count
    assert sorted(recorder.tokens) == sorted(row["deviceToken"] for row in supplied)


def test_supplied_objects_are_in_the_waves_of_their_zones(recorder: Recorder) -> None:
    install(1, timeZone="Pacific/Kiritimati")
    install(1, timeZone="Europe/Berlin")
    supplied = api.results("_Installation")

    @before_find("_Installation")
    def supply(request: FindRequest) -> Any:
        return supplied

    push_id = push(push_time="2020-01-15T12:00:00")
    while expansion.expand(push_id):
        pass
    assert work(push_id)["sentPerUTCOffset"] == {"14": 1, "1": 1}


def test_the_conditions_of_a_trigger_apply(recorder: Recorder) -> None:
    install(6)
    shown = install(5, channels=["news"])

    @before_find("_Installation")
    def narrow(request: FindRequest) -> None:
        request.query.where(channels="news")

    assert send_to_all()["numSent"] == 5
    assert sorted(message.installation for message in recorder.messages) == sorted(shown)


@pytest.mark.parametrize(
    ("option", "value"),
    [("limit", 1), ("limit", 0), ("skip", 2), ("order", "-createdAt"), ("keys", "channels")],
)
def test_other_options_of_a_trigger_leave_no_device_out(
    recorder: Recorder, option: str, value: Any
) -> None:
    install(9)

    @before_find("_Installation")
    def change(request: FindRequest) -> None:
        request.query.set_option(option, value)

    assert send_to_all()["numSent"] == 9
    assert Push.objects.get().pages == 3
