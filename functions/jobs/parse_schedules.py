"""Schedules in the format of Parse's ``_JobSchedule``, which Parse Dashboard reads and writes.

``startAfter`` is the time of the first run. With ``repeatMinutes`` the job then runs at this
interval, counted from ``timeOfDay`` if present, on the days of ``daysOfWeek`` (Sunday first).
``schedule`` and ``enabled`` are extensions of this service: ``schedule`` is a crontab line, seconds
or a time (``backend.settings.timetables``) and replaces all of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

import msgspec
from celery.schedules import ParseException
from django_celery_beat.models import PeriodicTask

from backend.kernel.errors import (
    IncorrectType,
    InvalidJSON,
    InvalidKeyName,
    InvalidValue,
    ObjectNotFound,
    ScriptFailed,
)
from backend.kernel.json_types import JsonObject
from backend.kernel.principal import Principal
from backend.kernel.texts.encoding import encode_json
from backend.kernel.texts.shown import shown
from backend.settings.timetables import Cron, Every, Once, Timing, parse
from functions.jobs import schedule_rows
from functions.jobs.start import check_may_start, checked
from functions.runtime.registry import registry
from objects.core.names import check_object_id, is_storable_text, new_object_id
from objects.core.values import normalise_date, wire_time
from objects.database import maintenance

_TIMES: Final = ("startAfter", "repeatMinutes", "timeOfDay", "daysOfWeek")
_READ_ONLY: Final = ("objectId", "createdAt", "updatedAt", "lastRun", "className", "__type")
_KNOWN: Final = frozenset({"jobName", "description", "params", "schedule", "enabled", *_TIMES})
_EVERY_DAY: Final = (True,) * 7
_DAY: Final = 1440  # minutes
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d(?:\.\d{1,6})?)?Z?").fullmatch
_LONGEST: Final = 1000  # characters of a description


def all_schedules() -> list[JsonObject]:
    """Return all schedules in wire form."""
    return [_wire(row) for row in schedule_rows.rows()]


def data() -> JsonObject:
    """Return the names of jobs that have schedules, and of all registered jobs."""
    in_use = dict.fromkeys(schedule_rows.job_of(row) for row in schedule_rows.rows())
    return {"in_use": [*in_use], "jobs": sorted(registry.jobs)}


def create(principal: Principal, body: Mapping[str, Any]) -> JsonObject:
    """Create a schedule and return its wire form.

    Raises ``ScriptFailed`` for an unknown job or parameters that it doesn't accept,
    ``UnderMaintenance``, and validation errors of the body.
    """
    check_may_start(principal)
    fields = _fields_of(body)
    if "jobName" not in fields:
        raise InvalidValue("job_schedule.jobName: expected the name of a job")
    with maintenance.writing():
        row = PeriodicTask(name=f"{fields['jobName']} {new_object_id()}")
        _change(row, {"startAfter": wire_time(datetime.now(UTC)), **fields}, fields)
        row.save()
    return _wire(row)


def update(principal: Principal, name: str, body: Mapping[str, Any]) -> JsonObject:
    """Change the fields of a schedule that the body names.

    ``name`` is the id of the schedule, or the name of the job whose code declares it.
    """
    check_may_start(principal)
    fields = _fields_of(body)
    with maintenance.writing():
        row = _find(name)
        _change(row, {**_wire(row), **fields}, fields)
        row.save()
    return _wire(row)


def transfer(object_id: str, fields: Mapping[str, Any], updated_at: str) -> bool:
    """Store a schedule of another server; return whether its job is registered here.

    It arrives disabled: its job may still run there. One that was stored before changes only if it
    has a later ``updated_at`` now, a time in wire form, and stays enabled or disabled. Raises
    ``ScriptFailed`` for parameters that the job doesn't accept, ``UnderMaintenance``, and
    validation errors of the fields.
    """
    body = {name: value for name, value in fields.items() if name in _KNOWN and value is not None}
    job = body.get("jobName")
    if not isinstance(job, str) or not job or not is_storable_text(job):
        raise InvalidValue("job_schedule.jobName: expected the name of a job")
    check_object_id(object_id)
    with maintenance.writing():
        row, former = schedule_rows.transferred(object_id)
        if former is None or former < updated_at:
            merged = {"startAfter": wire_time(datetime.now(UTC)), **body, "enabled": row.enabled}
            merged |= _numbers(merged)
            _set(row, job, merged, merged)
            schedule_rows.set_transferred(row, updated_at)
            row.save()
    return job in registry.jobs


def _numbers(fields: JsonObject) -> JsonObject:
    """Return the numbers of a stored schedule as ``/cloud_code`` takes them.

    Parse Dashboard stores the days as texts, and databases store whole numbers as floats.
    """
    numbers: JsonObject = {}
    days, minutes = fields.get("daysOfWeek"), fields.get("repeatMinutes")
    if isinstance(days, list):
        numbers["daysOfWeek"] = [{"0": 0, "1": 1}.get(str(day), day) for day in days]
    if isinstance(minutes, float) and minutes.is_integer():
        numbers["repeatMinutes"] = int(minutes)
    return numbers


def delete(principal: Principal, name: str) -> None:
    """Delete a schedule, or disable it if the code of a job declares it.

    A deleted declaration would be created again when beat starts.
    """
    check_may_start(principal)
    with maintenance.writing():
        row = _find(name)
        if schedule_rows.is_of_code(row):
            row.enabled = False
            row.save()
        else:
            row.delete()


def _find(name: str) -> PeriodicTask:
    """Lock and return a schedule by its id, or by the name of the job that declares it."""
    rows = schedule_rows.rows().select_for_update(of=("self",))
    if name.isascii() and name.isdigit():
        row = rows.filter(id=int(name)).first() if len(name) < 10 else None
    else:
        row = rows.filter(name=f"job {name}").first() if is_storable_text(name) else None
    if row is None:
        raise ObjectNotFound
    assert isinstance(row, PeriodicTask)
    return row


# -- Writing ---------------------------------------------------------------------------------------


def _fields_of(body: Mapping[str, Any]) -> JsonObject:
    fields = body.get("job_schedule")
    if not isinstance(fields, dict):
        raise InvalidJSON("job_schedule: expected an object")
    fields = {name: value for name, value in fields.items() if name not in _READ_ONLY}
    for name in fields.keys() - _KNOWN:
        raise InvalidKeyName(f"job_schedule.{shown(name)}: a schedule has no such field")
    return fields


def _change(row: PeriodicTask, merged: JsonObject, changes: JsonObject) -> None:
    """Apply ``changes`` to a row; ``merged`` has the current values of other fields as well."""
    job = merged["jobName"]
    if not isinstance(job, str) or job not in registry.jobs:
        raise ScriptFailed("Cannot Schedule a job that is not deployed")
    if schedule_rows.is_of_code(row) and job != schedule_rows.job_of(row):
        raise InvalidValue("job_schedule.jobName: this schedule belongs to the code of its job")
    _set(row, job, merged, changes)


def _set(row: PeriodicTask, job: str, merged: JsonObject, changes: JsonObject) -> None:
    params = _params(merged.get("params"))
    if job in registry.jobs:
        checked(job, params)
    schedule_rows.set_job(row, job, params)
    row.description = _description(merged.get("description"))
    enabled = merged.get("enabled", True)
    if not isinstance(enabled, bool):
        raise IncorrectType("job_schedule.enabled: expected true or false")
    row.enabled = enabled
    if changes.get("schedule") is not None:
        try:
            schedule_rows.set_timing(row, parse(changes["schedule"]))
        except ValueError as error:
            raise InvalidValue(f"job_schedule.schedule: {error}") from None
        row.start_time = None
    elif row.pk is None or not changes.keys().isdisjoint(_TIMES):
        start = _start_time(merged.get("startAfter"))
        timing = _timing(merged, start)
        schedule_rows.set_timing(row, timing)
        row.start_time = None if isinstance(timing, Once) else start


def _params(value: object) -> JsonObject:
    if isinstance(value, str):
        # Parse Dashboard sends the text of a JSON object.
        try:
            value = msgspec.json.decode(value or "{}")
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            raise InvalidJSON("job_schedule.params: not valid JSON, or nested too deeply") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise IncorrectType("job_schedule.params: expected an object")
    return value


def _description(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _LONGEST or not is_storable_text(value):
        raise IncorrectType(f"job_schedule.description: expected text of up to {_LONGEST}")
    return value


def _start_time(value: object) -> datetime:
    if isinstance(value, dict) and value.get("__type") == "Date":
        value = value.get("iso")
    return datetime.fromisoformat(normalise_date(value, "job_schedule.startAfter"))


def _timing(fields: JsonObject, start: datetime) -> Timing:
    minutes = fields.get("repeatMinutes")
    if minutes in (None, 0):
        return Once(start)
    if isinstance(minutes, bool) or not isinstance(minutes, int) or not 0 < minutes <= 525_600:
        raise IncorrectType("job_schedule.repeatMinutes: expected a number of minutes up to a year")
    days = _days(fields.get("daysOfWeek"))
    if fields.get("timeOfDay") in (None, "") and days == _EVERY_DAY:
        return Every(minutes * 60.0)
    first = _time_of_day(fields.get("timeOfDay"), start)
    line = _line(first, minutes, days)
    if line is not None:
        return line
    if days != _EVERY_DAY:
        raise InvalidValue(
            "job_schedule.repeatMinutes: on some days of the week only what divides an hour or"
            " a day evenly; use a crontab line in job_schedule.schedule"
        )
    return Every(minutes * 60.0)


def _days(value: object) -> tuple[bool, ...]:
    if value is None:
        return _EVERY_DAY
    if not isinstance(value, list) or len(value) != 7 or any(flag not in (0, 1) for flag in value):
        raise IncorrectType("job_schedule.daysOfWeek: expected seven times 0 or 1, from Sunday on")
    if not any(value):
        raise InvalidValue("job_schedule.daysOfWeek: expected a day at least")
    return tuple(bool(flag) for flag in value)


def _time_of_day(value: object, start: datetime) -> int:
    """Return the time of day in minutes since midnight."""
    if value in (None, ""):
        return start.hour * 60 + start.minute
    match = _TIME_OF_DAY(value) if isinstance(value, str) else None
    if match is None:
        raise IncorrectType("job_schedule.timeOfDay: expected a time such as 03:30:00.000Z")
    return int(match[1]) * 60 + int(match[2])


def _line(first: int, minutes: int, days: tuple[bool, ...]) -> Cron | None:
    """Return a crontab line for an interval in minutes that includes ``first``, or None."""
    week = "*" if days == _EVERY_DAY else _listed([day for day in range(7) if days[day]])
    if minutes < 60 and 60 % minutes == 0:
        return Cron(_listed([*range(first % minutes, 60, minutes)]), "*", day_of_week=week)
    if minutes % 60 == 0 and _DAY % minutes == 0:
        step = minutes // 60
        hours = _listed([*range(first // 60 % step, 24, step)])
        return Cron(str(first % 60), hours, day_of_week=week)
    return None


def _listed(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


# -- Reading ---------------------------------------------------------------------------------------


def _wire(row: PeriodicTask) -> JsonObject:
    timing = schedule_rows.timing_of(row)
    start = row.start_time or (timing.at if isinstance(timing, Once) else row.date_changed)
    changed = wire_time(row.date_changed)
    wire: JsonObject = {
        "objectId": str(row.pk),
        "createdAt": changed,
        "updatedAt": changed,
        "jobName": schedule_rows.job_of(row),
        "description": row.description or row.name,
        "params": encode_json(schedule_rows.params_of(row)).decode(),
        "startAfter": wire_time(start),
        "daysOfWeek": [1] * 7,
        "schedule": "" if timing is None else str(timing),
        "enabled": row.enabled,
    }
    if row.last_run_at is not None:
        wire["lastRun"] = int(row.last_run_at.timestamp() * 1000)
    if isinstance(timing, Every):
        wire |= {"repeatMinutes": max(1, round(timing.seconds / 60)), "timeOfDay": ""}
    elif isinstance(timing, Cron):
        wire |= _repetition(timing)
    return wire


def _repetition(timing: Cron) -> JsonObject:
    """Return a crontab line as Parse's fields, as far as they can express it.

    ``repeatMinutes`` is the smallest interval between two times of a day, ``timeOfDay`` the first.
    """
    try:
        parsed = timing.crontab()
    except (ValueError, ParseException):
        return {}
    times = [hour * 60 + minute for hour in sorted(parsed.hour) for minute in sorted(parsed.minute)]
    pauses = [later - former for former, later in pairwise(times)]
    first = times[0]
    return {
        "repeatMinutes": min(pauses, default=_DAY),
        "timeOfDay": f"{first // 60:02}:{first % 60:02}:00.000Z",
        "daysOfWeek": [int(day in parsed.day_of_week) for day in range(7)],
    }
