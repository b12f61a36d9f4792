"""Pushes for a later time: at a moment, or when the clocks of devices show it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from objects.push import delivery, local_times
from objects.push.models import Push
from tests.objects.push.pushing import api, install, pass_time, push, status, work
from tests.objects.push.recorder import Recorder

pytestmark = pytest.mark.django_db


@pytest.fixture
def recorder() -> Any:
    with Recorder.installed() as recorder:
        yield recorder


def sweep() -> tuple[list[str], list[str]]:
    """The pushes that workers get to read, and those to send."""
    to_read: list[str] = []
    to_send: list[str] = []
    delivery.start_due(to_read.append, to_send.append)
    return to_read, to_send


def in_hours(hours: float) -> datetime:
    return datetime.now(UTC) + timedelta(hours=hours)


def test_a_scheduled_push_waits_for_its_time(recorder: Recorder) -> None:
    install(1)
    push_id = push(push_time=in_hours(1).isoformat(), expiration_interval=60)
    stored = work(push_id)
    assert (stored["status"], stored["numSent"]) == ("scheduled", 0)
    assert stored["pushTime"].endswith("Z")
    assert stored["expiration_interval"] == 60
    assert "expiry" not in stored
    assert sweep() == ([], [])
    pass_time(3601)
    assert sweep() == ([push_id], [])
    assert work(push_id)["status"] == "succeeded"
    assert len(recorder.messages) == 1
    assert sweep() == ([], [])


def test_a_number_is_seconds_since_1970() -> None:
    stored = status(push(push_time=2**31))
    assert stored["pushTime"] == "2038-01-19T03:14:08.000Z"


def test_a_time_that_is_past_is_now(recorder: Recorder) -> None:
    install(1)
    assert work(push(push_time="2020-01-01T00:00:00Z"))["numSent"] == 1


def test_deleting_the_status_cancels_a_scheduled_push(recorder: Recorder) -> None:
    install(1)
    push_id = push(push_time=in_hours(1).isoformat())
    api.delete(f"/classes/_PushStatus/{push_id}")
    pass_time(3601)
    from objects.push import expansion, statuses

    expansion.expand(push_id)
    statuses.publish(push_id)
    delivery.send(push_id)
    assert Push.objects.get(pk=push_id).state == "ended"
    assert recorder.messages == []


def test_local_time_goes_from_east_to_west(recorder: Recorder) -> None:
    zones = {
        "Pacific/Kiritimati": None,
        "Asia/Kolkata": None,
        "Europe/Berlin": None,
        "America/New_York": None,
        "Nowhere/Else": None,
        None: None,
    }
    ids = {install(1, timeZone=zone)[0]: zone for zone in zones}
    noon = "2030-01-15T12:00:00"
    push_id = push(push_time=noon)
    assert status(push_id)["pushTime"] == "2030-01-15T12:00:00.000"
    moments: dict[str, datetime] = {}
    while (row := Push.objects.get(pk=push_id)).state == "waiting":
        before = len(recorder.messages)
        moment = local_times.moment_of(row.push_at, row.wave or 0)
        Push.objects.update(due_at=datetime.now(UTC) - timedelta(seconds=1))
        work(push_id)
        for message in recorder.messages[before:]:
            moments[str(ids[message.installation])] = moment
    assert {zone: f"{moment:%d %H:%M}" for zone, moment in moments.items()} == {
        "Pacific/Kiritimati": "14 22:00",
        "Asia/Kolkata": "15 06:30",
        "Europe/Berlin": "15 11:00",
        "Nowhere/Else": "15 12:00",
        "None": "15 12:00",
        "America/New_York": "15 17:00",
    }
    stored = status(push_id)
    assert (stored["status"], stored["numSent"]) == ("succeeded", 6)
    assert stored["sentPerUTCOffset"] == {"14": 1, "5:30": 1, "1": 1, "0": 2, "-5": 1}


def test_each_zone_is_in_one_wave() -> None:
    local = datetime(2030, 7, 1, 9)  # noqa: DTZ001 (on the clocks of devices)
    waves = local_times.zones_by_offset(local)
    names = [name for zones in waves.values() for name in zones]
    assert len(names) == len(set(names)) > 400
    order = []
    wave = local_times.next_wave(local, None)
    while wave is not None:
        order.append(wave)
        wave = local_times.next_wave(local, wave)
    assert order == sorted(waves, reverse=True)


def test_a_push_without_a_broker_is_sent_by_the_sweep(recorder: Recorder) -> None:
    install(1)
    push_id = push()
    assert sweep() == ([push_id], [])


def test_retries_are_sent_by_the_sweep(recorder: Recorder) -> None:
    from objects.push.adapters.base import later

    install(1)
    recorder.outcomes = {"token-0": later("busy")}
    push_id = push()
    work(push_id)
    assert sweep() == ([], [])
    pass_time(10)
    assert sweep() == ([], [push_id])


def test_old_targets_are_forgotten(recorder: Recorder) -> None:
    from objects.push import retention

    install(2)
    push_id = push()
    work(push_id)
    assert retention.prune() == 0
    pass_time(8 * 86_400)
    assert retention.prune() == 3
    assert status(push_id)["numSent"] == 2
