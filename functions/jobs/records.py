"""The rows of ``_JobStatus``: each change of a run is one conditional statement.

A run is ``queued``, then ``running``, then ``succeeded`` or ``failed``. A worker holds a run by the
number of its attempt: updates of an earlier attempt match no row. All times are the database's, so
clock differences of workers have no effect.

The rows are also written in maintenance mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

import msgspec
from django.db.models import DateTimeField, F, Func, Q, QuerySet, Value
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from backend.kernel.texts.encoding import encode_json, presentable
from functions.jobs.models import FAILED, QUEUED, RUNNING, SUCCEEDED, JobStatus
from objects.core.names import new_object_id
from objects.database.orm import delete_in_batches, orm_queries
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_value
from objects.sql.rows import NOW

_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt at a run, held by the worker that executes it."""

    status_id: str
    attempt: int
    job_name: str
    params: Mapping[str, Any]
    request_id: str
    """The id of the request that started it."""


@dataclass(frozen=True, slots=True)
class Open:
    """A running run that has missed its heartbeats."""

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
    """Insert a queued run and return its id, or None if an existing run prevents it."""
    return fetch_value(
        str,
        "INSERT INTO functions_job_status (object_id, created_at, updated_at, read_acl, write_acl,"
        " data, job_name, source, status, params, attempt, skipped, exclusive, occasion,"
        " request_id) SELECT %(id)s, t.now, t.now, '{}', '{}', '{}'::jsonb, %(job)s, %(source)s,"
        " 'queued', %(params)s::jsonb, 0, 0, %(exclusive)s::boolean, %(occasion)s, %(request_id)s"
        f" FROM (SELECT {NOW} AS now) t ON CONFLICT DO NOTHING RETURNING object_id",
        {
            "id": new_object_id(),
            "job": job_name,
            "source": source,
            "params": _json(params),
            "exclusive": exclusive,
            "occasion": occasion,
            "request_id": request_id,
        },
        prepare=True,
    )


def add_failed(job_name: str, params: Mapping[str, Any], *, source: str, error: str) -> str:
    """Insert a failed run that could not start, which records the reason, and return its id."""
    status_id = new_object_id()
    fetch(
        "INSERT INTO functions_job_status (object_id, created_at, updated_at, read_acl, write_acl,"
        " data, job_name, source, status, params, attempt, skipped, exclusive, message, error,"
        " finished_at) SELECT %(id)s, t.now, t.now, '{}', '{}', '{}'::jsonb, %(job)s, %(source)s,"
        " 'failed', %(params)s::jsonb, 0, 0, false, %(error)s, %(error)s, t.now"
        f" FROM (SELECT {NOW} AS now) t",
        {
            "id": status_id,
            "job": job_name,
            "source": source,
            "params": _json(params),
            "error": error,
        },
        prepare=False,
    )
    return status_id


def of_occasion(occasion: str) -> str | None:
    """Return the id of the run that a tick of a schedule created, or None."""
    with orm_queries():
        runs = JobStatus.objects.filter(occasion=occasion)
        return runs.values_list("pk", flat=True).first()


def open_status(job_name: str) -> str | None:
    """Return ``queued`` or ``running`` if the job has such a run, or None."""
    with orm_queries():
        runs = JobStatus.objects.filter(job_name=job_name, status__in=(QUEUED, RUNNING))
        return runs.order_by("-status").values_list("status", flat=True).first()


def note_skipped(job_name: str) -> None:
    """Count a skipped tick of a schedule on the current run of the job."""
    with orm_queries():
        JobStatus.objects.filter(
            job_name=job_name, exclusive=True, status__in=(QUEUED, RUNNING)
        ).update(skipped=F("skipped") + 1)


def note_published(status_id: str) -> None:
    """Record that the run was published to workers."""
    with orm_queries():
        queued = JobStatus.objects.filter(pk=status_id, status=QUEUED)
        queued.update(published_at=_now())


class _Claimed(NamedTuple):
    attempt: int
    job_name: str
    params: str | None
    request_id: str | None


def claim(status_id: str) -> Run | None:
    """Claim a queued run for this worker, or return None if it isn't queued any more."""
    # SQL: the update returns what it has claimed.
    rows = fetch_rows(
        _Claimed,
        "UPDATE functions_job_status j SET status = 'running', attempt = attempt + 1,"
        f" started_at = {NOW}, heartbeat_at = {NOW}, updated_at = {NOW}"
        " WHERE object_id = %(id)s AND status = 'queued'"
        f" RETURNING {select_list(_Claimed, 'j')}",
        {"id": status_id},
        prepare=True,
    )
    if not rows:
        return None
    row = rows[0]
    params = msgspec.json.decode(row.params or "{}")
    return Run(status_id, row.attempt, row.job_name, params, row.request_id or "")


def beat(run: Run, message: str | None) -> bool:
    """Write a heartbeat and any new message; return whether the run is still held."""
    now = _now()
    with orm_queries():
        if message is None:
            return _held(run).update(heartbeat_at=now) == 1
        text = _presentable(message)
        return _held(run).update(heartbeat_at=now, updated_at=now, message=text) == 1


def finish(
    run: Run | Open, status: str, message: str | None, error: str | None, *, silence: float = 0
) -> bool:
    """Finish a run that is held, or without heartbeat for ``silence`` seconds.

    Returns whether the run was in that state.
    """
    now = _now()
    values = {"status": status, "finished_at": now, "updated_at": now, "error": _presentable(error)}
    if message is not None:
        values["message"] = _presentable(message)
    with orm_queries():
        return _held(run, silence).update(**values) == 1


def _held(run: Run | Open, silence: float = 0) -> QuerySet[JobStatus]:
    held = JobStatus.objects.filter(pk=run.status_id, attempt=run.attempt, status=RUNNING)
    return held.filter(heartbeat_at__lt=_before(silence)) if silence else held


def silent(seconds: float) -> list[Open]:
    """Return the running runs without a heartbeat for so many seconds."""
    with orm_queries():
        runs = JobStatus.objects.filter(status=RUNNING, heartbeat_at__lt=_before(seconds))
        rows = runs.values_list("pk", "attempt", "job_name", Now() - F("started_at"))
        return [
            Open(status_id, attempt, job_name, 0 if age is None else age.total_seconds())
            for status_id, attempt, job_name, age in rows.order_by()
        ]


def queue_again(run: Open, silence: float) -> bool:
    """Queue a run without heartbeat for ``silence`` seconds again; return whether it was."""
    with orm_queries():
        changed = _held(run, silence).update(
            status=QUEUED, published_at=None, heartbeat_at=None, updated_at=_now()
        )
    return changed == 1


def unclaimed(never: float, again: float) -> list[tuple[str, str]]:
    """Return queued runs that no worker has claimed, as (id, job).

    Included are runs not published within ``never`` seconds, and runs published more than ``again``
    seconds ago.
    """
    is_due = Q(published_at=None, updated_at__lt=_before(never))
    is_due |= Q(published_at__lt=_before(again))
    with orm_queries():
        queued = JobStatus.objects.filter(is_due, status=QUEUED).order_by()
        return list(queued.values_list("pk", "job_name"))


def remove_old(days: int) -> int:
    """Delete runs that finished so many days ago and return their number."""
    over = JobStatus.objects.filter(
        status__in=(SUCCEEDED, FAILED),
        created_at__lt=_before(days * 86_400),
        finished_at__lt=_before(days * 86_400),
    )
    return delete_in_batches(over.order_by(), _AT_ONCE)


def _now() -> Func:
    """Return the database's time in whole milliseconds, the precision of wire dates."""
    return Func(Value("milliseconds"), Now(), function="date_trunc", output_field=DateTimeField())


def _before(seconds: float) -> CombinedExpression:
    return Now() - timedelta(seconds=seconds)


def _json(params: Mapping[str, Any]) -> str:
    return encode_json(params).decode()


def _presentable(text: str | None) -> str | None:
    return None if text is None else presentable(text)
