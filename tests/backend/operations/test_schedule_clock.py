"""The schedule goes on where the clock is set back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from backend.celery import app
from backend.tasks.scheduler import Entry, Scheduler

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
# The schedule closes connections that are too old by the clock.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tasks() -> list[PeriodicTask]:
    """Two that have run an hour after noon."""
    PeriodicTask.objects.all().delete()
    every, _ = IntervalSchedule.objects.get_or_create(every=5, period="seconds")
    return [
        PeriodicTask.objects.create(
            name=name, task="nothing", interval=every, last_run_at=NOON + timedelta(hours=1)
        )
        for name in ("first", "second")
    ]


class Sending(Scheduler):
    """Keeps what it would send."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        super().__init__(app=app, lazy=True)

    def setup_schedule(self) -> None:
        """Nothing but what is in the database."""

    def apply_entry(self, entry: Entry, producer: object = None) -> None:
        self.sent.append(entry.name)

    @property
    def producer(self) -> None:
        return None


def test_what_ran_in_the_future_is_due_after_its_interval(tasks: list[PeriodicTask]) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        entry = Entry(tasks[0], app=app)
        assert entry.is_due().is_due is False
        clock.shift(6)
        assert entry.is_due().is_due is True


def test_what_has_a_time_of_day_is_due_there_after_the_clock_was_set_back_by_half_a_day() -> None:
    """The schedule reads only what is due in the next hours."""
    PeriodicTask.objects.all().delete()
    noon, _ = CrontabSchedule.objects.get_or_create(minute="0", hour="12")
    PeriodicTask.objects.create(name="noon", task="nothing", crontab=noon)
    PeriodicTask.objects.update(last_run_at=NOON - timedelta(days=1))
    with time_machine.travel(NOON + timedelta(hours=12), tick=False) as clock:
        scheduler = Sending()
        scheduler.tick()
        assert "noon" not in scheduler.schedule
        clock.shift(timedelta(hours=-12, seconds=-10))
        scheduler.tick()
        clock.shift(11)
        for _ in range(3):
            scheduler.tick()
        assert scheduler.sent == ["noon"]


@pytest.mark.usefixtures("tasks")
def test_everything_is_planned_again_when_the_clock_is_set_back() -> None:
    with time_machine.travel(NOON + timedelta(hours=1, seconds=6), tick=False) as clock:
        scheduler = Sending()
        scheduler.tick()
        scheduler.tick()
        assert sorted(scheduler.sent) == ["first", "second"]
        clock.shift(timedelta(hours=-1))
        scheduler.sent.clear()
        scheduler.tick()
        clock.shift(6)
        for _ in range(4):
            scheduler.tick()
        assert sorted(scheduler.sent) == ["first", "second"]
