"""Schedules: rows of django-celery-beat that start jobs.

The rows are what beat goes by, and the only place where schedules are: the admin, ``/cloud_code``
and this module all change them. A job's ``schedule`` makes the row ``job NAME`` when beat starts.
From then on the row is the staff's: what they have changed stays, also when code is deployed anew.
Only a row that is still as the code had it follows when the code says something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from django.db import transaction
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
)

from backend.kernel.connections.advisory_locks import JOB_SCHEDULES
from backend.logs.setup import get_logger
from functions.runtime.registry import registry
from functions.runtime.timetables import Cron, Every, Once, Timing, parse
from objects.database import locks

START_TASK: Final = "functions.start_scheduled_job"
_OF_CODE: Final = "job "  # what the names of their rows begin with
_DECLARED, _GONE = "declared", "gone"
_LATE: Final = 3600  # seconds after which a tick that no worker has taken is forgotten

log = get_logger("jobs")


def rows() -> Any:
    """The schedules of jobs, as a query set."""
    found = PeriodicTask.objects.filter(task=START_TASK).order_by("id")
    return found.select_related("interval", "crontab", "clocked")


def is_of_code(row: PeriodicTask) -> bool:
    """Whether a job's code has made the row, and would make it again."""
    return str(row.name).startswith(_OF_CODE)


def job_of(row: PeriodicTask) -> str:
    """The name of the job that a schedule starts."""
    return str(_decoded(row.kwargs).get("job", ""))


def params_of(row: PeriodicTask) -> dict[str, Any]:
    """The parameters that it starts it with."""
    found = _decoded(row.kwargs).get("params")
    return found if isinstance(found, dict) else {}


def timing_of(row: PeriodicTask) -> Timing | None:
    """When a schedule is due; None for kinds that are not ours."""
    if row.interval is not None:
        every: Any = row.interval
        return Every(every.every * _UNITS[every.period])
    if row.crontab is not None:
        line: Any = row.crontab
        days = (line.day_of_month, line.month_of_year, line.day_of_week)
        return Cron(line.minute, line.hour, *days, str(line.timezone))
    if row.clocked is not None:
        return Once(row.clocked.clocked_time)
    return None


_UNITS: Final[dict[str, float]] = {
    IntervalSchedule.DAYS: 86_400,
    IntervalSchedule.HOURS: 3600,
    IntervalSchedule.MINUTES: 60,
    IntervalSchedule.SECONDS: 1,
    IntervalSchedule.MICROSECONDS: 0.000_001,
}


def set_job(row: PeriodicTask, job: str, params: Mapping[str, Any]) -> None:
    """Let a row start this job; it isn't saved."""
    row.task = START_TASK
    row.kwargs = _encoded({"job": job, "params": params})


def set_timing(row: PeriodicTask, timing: Timing) -> None:
    """Let a row be due then; it isn't saved."""
    row.interval = row.crontab = row.clocked = row.solar = None
    row.one_off = isinstance(timing, Once)
    row.expire_seconds = _LATE
    if isinstance(timing, Every):
        row.interval = _interval(timing.seconds)
        row.expire_seconds = max(1, min(_LATE, int(timing.seconds)))
    elif isinstance(timing, Cron):
        row.crontab = _crontab(timing)
    else:
        row.clocked = ClockedSchedule.objects.create(clocked_time=timing.at)
        row.expire_seconds = None


def _interval(seconds: float) -> IntervalSchedule:
    every, period = int(seconds), IntervalSchedule.SECONDS
    if seconds % 1:
        every, period = round(seconds * 1_000_000), IntervalSchedule.MICROSECONDS
    found = IntervalSchedule.objects.filter(every=every, period=period).first()
    return found or IntervalSchedule.objects.create(every=every, period=period)


def _crontab(timing: Cron) -> CrontabSchedule:
    fields = {
        "minute": timing.minute,
        "hour": timing.hour,
        "day_of_month": timing.day_of_month,
        "month_of_year": timing.month_of_year,
        "day_of_week": timing.day_of_week,
        "timezone": timing.timezone,
    }
    found = CrontabSchedule.objects.filter(**fields).first()
    return found or CrontabSchedule.objects.create(**fields)


@dataclass(frozen=True, slots=True)
class OneRun:
    """A schedule for one run. Beat may send it twice; its ``occasion`` is the same then."""

    row_id: int
    occasion: str


def once(name: str | None) -> OneRun | None:
    """The schedule of this name, if it is for one run."""
    row = rows().filter(name=name, clocked__isnull=False).first() if name else None
    if row is None:
        return None
    return OneRun(row.pk, f"{row.pk} {row.clocked.clocked_time.isoformat()}")


def switch_off(schedule: OneRun) -> None:
    """Its run is there: beat needn't look at it any more."""
    with transaction.atomic():
        row = rows().select_for_update(of=("self",)).filter(pk=schedule.row_id).first()
        if row is not None:
            row.enabled = False
            row.save()


# -- What the code says ----------------------------------------------------------------------------


def synchronise() -> None:
    """Make the rows of jobs that say when they run; switch off those whose job is gone, and on
    again those whose job is back. May be called by several processes at once."""
    with transaction.atomic():
        locks.lock_transaction(JOB_SCHEDULES)
        known = {row.name: row for row in rows().select_for_update(of=("self",))}
        for name, job in registry.jobs.items():
            if job.schedule is not None:
                _make(name, str(parse(job.schedule)), known.get(f"{_OF_CODE}{name}"))
        for row in known.values():
            _note_gone(row)


def _make(name: str, declared: str, row: PeriodicTask | None) -> None:
    if row is None:
        row = PeriodicTask(name=f"{_OF_CODE}{name}")
        set_job(row, name, {})
        log.info("schedule made", job=name, schedule=declared)
    else:
        former = _decoded(row.headers).get(_DECLARED)
        if former == declared:
            return
        if str(timing_of(row)) != former:
            # Staff have chosen another time; that stays, and so does what it was compared with.
            return
        log.info("schedule changed by the code", job=name, schedule=declared)
    set_timing(row, parse(declared))
    row.headers = _encoded({**_decoded(row.headers), _DECLARED: declared})
    row.save()


def _note_gone(row: PeriodicTask) -> None:
    headers = _decoded(row.headers)
    job = registry.jobs.get(job_of(row))
    is_gone = job is None or (is_of_code(row) and job.schedule is None)
    if is_gone and row.enabled:
        row.headers = _encoded({**headers, _GONE: True})
        row.enabled = False
        row.save()
        log.warning("schedule switched off: its job is gone", schedule=row.name)
    elif not is_gone and headers.pop(_GONE, False):
        row.headers = _encoded(headers)
        row.enabled = True
        row.save()
        log.info("schedule switched on: its job is back", schedule=row.name)


def is_gone(row: PeriodicTask) -> bool:
    """Whether a schedule was switched off because nobody registers its job any more."""
    return bool(_decoded(row.headers).get(_GONE))


def with_jobs() -> Iterator[tuple[str, list[PeriodicTask]]]:
    """Every registered job by name, with its schedules."""
    found: dict[str, list[PeriodicTask]] = {}
    for row in rows():
        found.setdefault(job_of(row), []).append(row)
    for name in sorted(registry.jobs):
        yield name, found.get(name, [])


def _decoded(text: str | None) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _encoded(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
