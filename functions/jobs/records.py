"""The rows of ``_JobStatus``: each change of a run is one conditional statement here.

A run is ``queued``, then ``running``, then ``succeeded`` or ``failed``. Who carries it out holds it
by its number of the attempt: what somebody writes whose attempt is over finds no row. All times
are the database's, so that the clocks of workers don't matter.

The rows are the service's own records: they are written in maintenance mode as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import msgspec
from django.db.models import DateTimeField, F, Func, Q, QuerySet, Value
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from functions.jobs.models import FAILED, QUEUED, RUNNING, SUCCEEDED, JobStatus
from objects.core.names import new_object_id
from objects.database.orm import delete_in_batches, orm_queries
from objects.database.statements import fetch

LONGEST_TEXT: Final = 10_000  # characters of a message
_AT_ONCE: Final = 1000
_NOW: Final = "date_trunc('milliseconds', statement_timestamp())"


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a run, as whoever carries it out holds it."""

    status_id: str
    attempt: int
    job_name: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Open:
    """A run that isn't over, as the tending task finds it."""

    status_id: str
    attempt: int
    job_name: str
    seconds: float
    """How long the attempt has been running."""


def add(
    job_name: str,
    params: Mapping[str, Any],
    *,
    source: str,
    exclusive: bool,
    request_id: str = "",
    occasion: str | None = None,
) -> str | None:
    """A new queued run; None if there is one already that keeps it from being made."""
    rows = fetch(
        "INSERT INTO functions_job_status (object_id, created_at, updated_at, read_acl, write_acl,"
        " data, job_name, source, status, params, attempt, skipped, exclusive, occasion,"
        " request_id) SELECT %s, t.now, t.now, '{}', '{}', '{}'::jsonb, %s, %s, 'queued',"
        f" %s::jsonb, 0, 0, %s::boolean, %s, %s FROM (SELECT {_NOW} AS now) t"
        " ON CONFLICT DO NOTHING RETURNING object_id",
        (new_object_id(), job_name, source, _json(params), exclusive, occasion, request_id),
        prepare=True,
    )
    return rows[0][0] if rows else None


def add_failed(job_name: str, params: Mapping[str, Any], *, source: str, error: str) -> str:
    """A run that could not even begin, for those who look why there is none."""
    status_id = new_object_id()
    fetch(
        "INSERT INTO functions_job_status (object_id, created_at, updated_at, read_acl, write_acl,"
        " data, job_name, source, status, params, attempt, skipped, exclusive, message, error,"
        " finished_at) SELECT %s, t.now, t.now, '{}', '{}', '{}'::jsonb, %s, %s, 'failed',"
        f" %s::jsonb, 0, 0, false, %s, %s, t.now FROM (SELECT {_NOW} AS now) t",
        (status_id, job_name, source, _json(params), error, error),
        prepare=False,
    )
    return status_id


def of_occasion(occasion: str) -> str | None:
    """The run that a tick of a schedule has made."""
    with orm_queries():
        runs = JobStatus.objects.filter(occasion=occasion)
        return runs.values_list("pk", flat=True).first()


def open_status(job_name: str) -> str | None:
    """Whether a run of the job is ``queued`` or ``running``."""
    with orm_queries():
        runs = JobStatus.objects.filter(job_name=job_name, status__in=(QUEUED, RUNNING))
        return runs.order_by("-status").values_list("status", flat=True).first()


def note_skipped(job_name: str) -> None:
    """Count, at the run under way, that a schedule would have begun another one."""
    with orm_queries():
        JobStatus.objects.filter(
            job_name=job_name, exclusive=True, status__in=(QUEUED, RUNNING)
        ).update(skipped=F("skipped") + 1)


def note_published(status_id: str) -> None:
    """Workers have been told of the run."""
    with orm_queries():
        queued = JobStatus.objects.filter(pk=status_id, status=QUEUED)
        queued.update(published_at=_now())


def claim(status_id: str) -> Run | None:
    """Begin a queued run; None if somebody has begun it before, or it is gone."""
    # SQL: the update returns what it has claimed.
    rows = fetch(
        "UPDATE functions_job_status SET status = 'running', attempt = attempt + 1,"
        f" started_at = {_NOW}, heartbeat_at = {_NOW}, updated_at = {_NOW}"
        " WHERE object_id = %s AND status = 'queued'"
        " RETURNING attempt, job_name, params::text",
        (status_id,),
        prepare=True,
    )
    if not rows:
        return None
    attempt, job_name, params = rows[0]
    return Run(status_id, int(attempt), job_name, msgspec.json.decode(params or "{}"))


def beat(run: Run, message: str | None) -> bool:
    """Leave a sign of life, and the latest message if there is a new one; whether the run is
    still held."""
    now = _now()
    with orm_queries():
        if message is None:
            return _held(run).update(heartbeat_at=now) == 1
        text = _short(message)
        return _held(run).update(heartbeat_at=now, updated_at=now, message=text) == 1


def finish(
    run: Run | Open, status: str, message: str | None, error: str | None, *, silence: float = 0
) -> bool:
    """End a run that is held, or one that was silent for so many seconds; whether it was."""
    now = _now()
    values = {"status": status, "finished_at": now, "updated_at": now, "error": _short(error)}
    if message is not None:
        values["message"] = _short(message)
    with orm_queries():
        return _held(run, silence).update(**values) == 1


def _held(run: Run | Open, silence: float = 0) -> QuerySet[JobStatus]:
    held = JobStatus.objects.filter(pk=run.status_id, attempt=run.attempt, status=RUNNING)
    return held.filter(heartbeat_at__lt=_before(silence)) if silence else held


def silent(seconds: float) -> list[Open]:
    """The runs that have left no sign of life for so long."""
    with orm_queries():
        runs = JobStatus.objects.filter(status=RUNNING, heartbeat_at__lt=_before(seconds))
        rows = runs.values_list("pk", "attempt", "job_name", Now() - F("started_at"))
        return [
            Open(status_id, attempt, job_name, 0 if age is None else age.total_seconds())
            for status_id, attempt, job_name, age in rows.order_by()
        ]


def queue_again(run: Open, silence: float) -> bool:
    """Have a run that was silent for so long carried out once more; whether it still was."""
    with orm_queries():
        changed = _held(run, silence).update(
            status=QUEUED, published_at=None, heartbeat_at=None, updated_at=_now()
        )
    return changed == 1


def unheard(never: float, again: float) -> list[tuple[str, str]]:
    """The queued runs, as (id, job), that no worker seems to know of: those of which workers were
    ``never`` told for so many seconds, and those that they were told of so long ago."""
    is_due = Q(published_at=None, updated_at__lt=_before(never))
    is_due |= Q(published_at__lt=_before(again))
    with orm_queries():
        queued = JobStatus.objects.filter(is_due, status=QUEUED).order_by()
        return list(queued.values_list("pk", "job_name"))


def remove_old(days: int) -> int:
    """Remove runs that have been over for so many days; how many that were."""
    over = JobStatus.objects.filter(
        status__in=(SUCCEEDED, FAILED),
        created_at__lt=_before(days * 86_400),
        finished_at__lt=_before(days * 86_400),
    )
    return delete_in_batches(over.order_by(), _AT_ONCE)


def _now() -> Func:
    """The database's clock, in whole milliseconds as in the wire form of dates."""
    return Func(Value("milliseconds"), Now(), function="date_trunc", output_field=DateTimeField())


def _before(seconds: float) -> CombinedExpression:
    return Now() - timedelta(seconds=seconds)


def _json(params: Mapping[str, Any]) -> str:
    return msgspec.json.encode(params).decode()


def _short(text: str | None) -> str | None:
    if text is None:
        return None
    # What PostgreSQL can't keep, a job may well say.
    kept = text.replace("\x00", "").encode("utf-8", "replace").decode()
    return kept if len(kept) <= LONGEST_TEXT else f"{kept[: LONGEST_TEXT - 1]}…"
