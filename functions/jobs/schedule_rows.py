"""Schedules: rows of django-celery-beat that start jobs.

The rows are the only storage of schedules: beat reads them, and the admin, ``/cloud_code`` and this
module change them. A job's ``schedule`` creates the row ``job NAME`` when beat starts. Changes by
staff are preserved when the code is deployed again. A row that staff haven't changed is updated
when the ``schedule`` in the code changes.
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
from backend.kernel.texts.encoding import encode_json
from backend.logs.setup import get_logger
from backend.settings.timetables import Cron, Every, Once, Timing, parse
from functions.runtime.registry import registry
from objects.database import locks

START_TASK: Final = "functions.start_scheduled_job"
_OF_CODE: Final = "job "  # prefix of the names of rows that the code declares
_OF_ANOTHER_SERVER: Final = "imported "
_DECLARED, _GONE, _TRANSFERRED = "declared", "gone", "transferred"
_LATE: Final = 3600  # seconds after which a tick that no worker has taken expires

log = get_logger("jobs")


def rows() -> Any:
    """Return the schedules of jobs as a query set."""
    tasks = PeriodicTask.objects.filter(task=START_TASK).order_by("id")
    return tasks.select_related("interval", "crontab", "clocked")


def is_of_code(row: PeriodicTask) -> bool:
    """Whether the row was created from the code of a job, which would create it again."""
    return str(row.name).startswith(_OF_CODE)


def job_of(row: PeriodicTask) -> str:
    """Return the name of the job that a schedule starts."""
    return str(_decoded(row.kwargs).get("job", ""))


def params_of(row: PeriodicTask) -> dict[str, Any]:
    """Return the parameters that a schedule passes to its job."""
    params = _decoded(row.kwargs).get("params")
    return params if isinstance(params, dict) else {}


def timing_of(row: PeriodicTask) -> Timing | None:
    """Return when a schedule is due, or None for kinds that this service doesn't use."""
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
    """Set the job and parameters of a row, without saving it."""
    row.task = START_TASK
    row.kwargs = _encoded({"job": job, "params": params})


def set_timing(row: PeriodicTask, timing: Timing) -> None:
    """Set when a row is due, without saving it."""
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
    existing = IntervalSchedule.objects.filter(every=every, period=period).first()
    return existing or IntervalSchedule.objects.create(every=every, period=period)


def _crontab(timing: Cron) -> CrontabSchedule:
    fields = {
        "minute": timing.minute,
        "hour": timing.hour,
        "day_of_month": timing.day_of_month,
        "month_of_year": timing.month_of_year,
        "day_of_week": timing.day_of_week,
        "timezone": timing.timezone,
    }
    existing = CrontabSchedule.objects.filter(**fields).first()
    return existing or CrontabSchedule.objects.create(**fields)


def transferred(object_id: str) -> tuple[PeriodicTask, str | None]:
    """Lock and return another server's schedule, and its time of update there when it was stored.

    If it isn't stored, returns a new row, disabled and not saved, and None.
    """
    name = f"{_OF_ANOTHER_SERVER}{object_id}"
    row = rows().select_for_update(of=("self",)).filter(name=name).first()
    if row is None:
        return PeriodicTask(name=name, enabled=False), None
    return row, str(_decoded(row.headers).get(_TRANSFERRED, ""))


def set_transferred(row: PeriodicTask, updated_at: str) -> None:
    """Set when another server's schedule was updated there, without saving the row."""
    row.headers = _encoded({**_decoded(row.headers), _TRANSFERRED: updated_at})


@dataclass(frozen=True, slots=True)
class OneRun:
    """A schedule for a single run. Beat may send it twice, with the same ``occasion``."""

    row_id: int
    occasion: str


def once(name: str | None) -> OneRun | None:
    """Return the schedule of this name if it is for a single run, or None."""
    row = rows().filter(name=name, clocked__isnull=False).first() if name else None
    if row is None:
        return None
    return OneRun(row.pk, f"{row.pk} {row.clocked.clocked_time.isoformat()}")


def switch_off(schedule: OneRun) -> None:
    """Disable a schedule whose run exists, so that beat no longer checks it."""
    with transaction.atomic():
        row = rows().select_for_update(of=("self",)).filter(pk=schedule.row_id).first()
        if row is not None:
            row.enabled = False
            row.save()


# -- Schedules declared in code --------------------------------------------------------------------


def synchronise() -> None:
    """Create and update the rows of jobs that declare a schedule.

    Disables rows whose job is no longer registered, and enables them again when it is. Safe to call
    from several processes concurrently.
    """
    with transaction.atomic():
        locks.lock_transaction(JOB_SCHEDULES)
        existing = {row.name: row for row in rows().select_for_update(of=("self",))}
        for name, job in registry.jobs.items():
            if job.schedule is not None:
                _make(name, str(parse(job.schedule)), existing.get(f"{_OF_CODE}{name}"))
        for row in existing.values():
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
            # Staff have changed the schedule: preserve it and the declaration it is compared with.
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
    """Whether a schedule was disabled because its job is no longer registered."""
    return bool(_decoded(row.headers).get(_GONE))


def with_jobs() -> Iterator[tuple[str, list[PeriodicTask]]]:
    """Iterate over registered jobs by name, with their schedules."""
    rows_by_job: dict[str, list[PeriodicTask]] = {}
    for row in rows():
        rows_by_job.setdefault(job_of(row), []).append(row)
    for name in sorted(registry.jobs):
        yield name, rows_by_job.get(name, [])


def _decoded(text: str | None) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _encoded(value: Mapping[str, Any]) -> str:
    return encode_json(value).decode()
