"""Pushes for a later time: at a moment, or when the clocks of devices show it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from objects.definitions.models import Maintenance
from objects.push import expansion, local_times, retention
from objects.push.adapters.base import later
from objects.push.models import Push
from tests.objects.push.pushing import api, install, pass_time, push, status, sweep, targets, work
from tests.objects.push.recorder import Recorder

pytestmark = pytest.mark.django_db


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


@pytest.mark.slow
def test_local_time_goes_from_east_to_west(recorder: Recorder) -> None:
    zones = [
        "Pacific/Kiritimati",
        "Asia/Kolkata",
        "Europe/Berlin",
        "America/New_York",
        "Nowhere/Else",
        None,
    ]
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


def test_a_wave_that_cannot_be_read_leaves_no_device_of_those_before_out(
    recorder: Recorder,
) -> None:
    install(1, timeZone="Pacific/Kiritimati")
    install(1)
    push_id = push(push_time="2030-01-15T12:00:00", where={"deviceToken": {"$exists": True}})
    make_due()
    expansion.expand(push_id)
    row = Push.objects.get(pk=push_id)
    Push.objects.update(request=row.request.replace('{"$exists":true}', '{"$wrong":1}'))
    make_due()
    stored = work(push_id)
    assert (stored["status"], stored["numSent"]) == ("failed", 1)
    assert stored["sentPerUTCOffset"] == {"14": 1}


def make_due() -> None:
    Push.objects.update(due_at=timezone.now() - timedelta(seconds=1))


def test_a_device_that_travels_west_gets_a_push_once(recorder: Recorder) -> None:
    installation = install(1, timeZone="Pacific/Kiritimati")[0]
    push_id = push(push_time="2030-01-15T12:00:00", data={"badge": "Increment"})
    make_due()
    expansion.expand(push_id)
    api.put(f"/installations/{installation}", {"timeZone": "Europe/Berlin"})
    while Push.objects.get(pk=push_id).state == "waiting":
        make_due()
        work(push_id)
    assert status(push_id)["numSent"] == len(recorder.messages) == 1
    assert api.get(f"/installations/{installation}").json["badge"] == 1


def test_an_interval_begins_when_a_push_is_sent(recorder: Recorder) -> None:
    install(1)
    push_id = push(push_time="2020-01-01T00:00:00Z", expiration_interval=600)
    assert work(push_id)["numSent"] == 1
    expires_at = recorder.messages[0].expires_at
    assert expires_at is not None
    assert 500 < expires_at - datetime.now(UTC).timestamp() <= 600


def test_an_interval_begins_when_a_wave_is_sent_whose_time_has_passed(recorder: Recorder) -> None:
    install(1, timeZone="Pacific/Kiritimati")
    an_hour_ago = in_hours(-1).replace(tzinfo=None).isoformat()
    push_id = push(push_time=an_hour_ago, expiration_interval=600)
    work(push_id)
    expires_at = recorder.messages[0].expires_at
    assert expires_at is not None
    assert 500 < expires_at - datetime.now(UTC).timestamp() <= 600


def test_a_delay_between_pages_does_not_prolong_an_interval(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "PAGE", 2)
    install(3)
    moment = in_hours(-0.5).isoformat()
    push_id = push(push_time=moment, expiration_interval=600, data={"badge": "Increment"})
    assert expansion.expand(push_id)
    Maintenance.objects.create(id=1, message="wait", since=timezone.now(), chain_paused=False)
    assert not expansion.expand(push_id)
    Maintenance.objects.all().delete()
    make_due()
    assert work(push_id)["numSent"] == 3
    assert len({target.expires_at for target in targets(push_id)}) == 1


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
    install(1)
    recorder.outcomes = {"token-0": later("busy")}
    push_id = push()
    work(push_id)
    assert sweep() == ([], [])
    pass_time(10)
    assert sweep() == ([], [push_id])


def test_the_sweep_continues_the_oldest_pushes_first(recorder: Recorder) -> None:
    install(1)
    recorder.outcomes = {"token-0": later("busy")}
    pushes = [push() for _ in range(5)]
    # In another order than they were made in.
    by_age = [pushes[number] for number in (2, 0, 4, 1, 3)]
    for number, push_id in enumerate(by_age):
        Push.objects.filter(pk=push_id).update(due_at=in_hours(number - 10))
    assert sweep(limit=2) == (by_age[:2], [])
    for push_id in pushes:
        work(push_id)
    pass_time(10)
    assert sweep(limit=2) == ([], by_age[:2])


def test_the_sweep_ends_and_publishes_the_oldest_pushes_first() -> None:
    pushes = [push() for _ in range(5)]
    by_age = [pushes[number] for number in (2, 0, 4, 1, 3)]
    for number, push_id in enumerate(by_age):
        Push.objects.filter(pk=push_id).update(due_at=in_hours(number - 10))
        expansion.expand(push_id)  # without a target
    sweep(limit=2)
    states = [(push.state, push.is_published) for push in Push.objects.order_by("due_at")]
    assert states == [("ended", True)] * 2 + [("sending", False)] * 3
    sweep(limit=5)
    assert {status(push_id)["status"] for push_id in pushes} == {"succeeded"}


def test_old_targets_are_forgotten(recorder: Recorder) -> None:
    install(2)
    push_id = push()
    work(push_id)
    assert retention.prune() == 0
    pass_time(8 * 86_400)
    assert retention.prune() == 3
    assert status(push_id)["numSent"] == 2
