"""The rows of ``_JobStatus``: each change of a run is one conditional statement here.

A run is ``queued``, then ``running``, then ``succeeded`` or ``failed``. Who carries it out holds it
by its number of the attempt: what somebody writes whose attempt is over finds no row. All times
are the database's, so that the clocks of workers don't matter.

The rows are the service's own records: they are written in maintenance mode as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from objects.core.names import new_object_id
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
    rows = fetch(
        "SELECT object_id FROM functions_job_status WHERE occasion = %s", (occasion,), prepare=True
    )
    return rows[0][0] if rows else None


def open_status(job_name: str) -> str | None:
    """Whether a run of the job is ``queued`` or ``running``."""
    rows = fetch(
        "SELECT status FROM functions_job_status WHERE job_name = %s"
        " AND status IN ('queued', 'running') ORDER BY status DESC LIMIT 1",
        (job_name,),
        prepare=True,
    )
    return rows[0][0] if rows else None


def note_skipped(job_name: str) -> None:
    """Count, at the run under way, that a schedule would have begun another one."""
    fetch(
        "UPDATE functions_job_status SET skipped = skipped + 1 WHERE job_name = %s"
        " AND exclusive AND status IN ('queued', 'running')",
        (job_name,),
        prepare=True,
    )


def note_published(status_id: str) -> None:
    """Workers have been told of the run."""
    fetch(
        f"UPDATE functions_job_status SET published_at = {_NOW}"
        " WHERE object_id = %s AND status = 'queued'",
        (status_id,),
        prepare=True,
    )


def claim(status_id: str) -> Run | None:
    """Begin a queued run; None if somebody has begun it before, or it is gone."""
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


_HELD: Final = "WHERE object_id = %s AND attempt = %s AND status = 'running'"


def beat(run: Run, message: str | None) -> bool:
    """Leave a sign of life, and the latest message if there is a new one; whether the run is
    still held."""
    if message is None:
        statement = f"UPDATE functions_job_status SET heartbeat_at = {_NOW} {_HELD} RETURNING 1"
        return bool(fetch(statement, (run.status_id, run.attempt), prepare=True))
    rows = fetch(
        f"UPDATE functions_job_status SET heartbeat_at = {_NOW}, updated_at = {_NOW}, message = %s"
        f" {_HELD} RETURNING 1",
        (_short(message), run.status_id, run.attempt),
        prepare=True,
    )
    return bool(rows)


def finish(
    run: Run | Open, status: str, message: str | None, error: str | None, *, silence: float = 0
) -> bool:
    """End a run that is held, or one that was silent for so many seconds; whether it was."""
    rows = fetch(
        f"UPDATE functions_job_status SET status = %s, finished_at = {_NOW}, updated_at = {_NOW},"
        f" message = COALESCE(%s, message), error = %s {_HELD} AND ({_SILENT}) RETURNING 1",
        (status, _short(message), _short(error), run.status_id, run.attempt, silence, silence),
        prepare=True,
    )
    return bool(rows)


_SILENT: Final = (
    "%s::float8 = 0 OR heartbeat_at < statement_timestamp() - make_interval(secs => %s::float8)"
)


def silent(seconds: float) -> list[Open]:
    """The runs that have left no sign of life for so long."""
    rows = fetch(
        "SELECT object_id, attempt, job_name,"
        " extract(epoch FROM statement_timestamp() - started_at) FROM functions_job_status"
        " WHERE status = 'running'"
        " AND heartbeat_at < statement_timestamp() - make_interval(secs => %s::float8)",
        (seconds,),
        prepare=False,
    )
    return [Open(row[0], int(row[1]), row[2], float(row[3] or 0)) for row in rows]


def queue_again(run: Open, silence: float) -> bool:
    """Have a run that was silent for so long carried out once more; whether it still was."""
    rows = fetch(
        "UPDATE functions_job_status SET status = 'queued', published_at = NULL,"
        f" heartbeat_at = NULL, updated_at = {_NOW} {_HELD} AND ({_SILENT}) RETURNING 1",
        (run.status_id, run.attempt, silence, silence),
        prepare=False,
    )
    return bool(rows)


def unheard(never: float, again: float) -> list[tuple[str, str]]:
    """The queued runs, as (id, job), that no worker seems to know of: those of which workers were
    ``never`` told for so many seconds, and those that they were told of so long ago."""
    rows = fetch(
        "SELECT object_id, job_name FROM functions_job_status WHERE status = 'queued' AND"
        " CASE WHEN published_at IS NULL"
        " THEN updated_at < statement_timestamp() - make_interval(secs => %s::float8)"
        " ELSE published_at < statement_timestamp() - make_interval(secs => %s::float8) END",
        (never, again),
        prepare=False,
    )
    return [(row[0], row[1]) for row in rows]


def remove_old(days: int) -> int:
    """Remove runs that have been over for so many days; how many that were."""
    removed = 0
    while True:
        rows = fetch(
            "DELETE FROM functions_job_status WHERE object_id = ANY (SELECT object_id"
            " FROM functions_job_status WHERE status IN ('succeeded', 'failed')"
            " AND created_at < statement_timestamp() - make_interval(days => %s)"
            " AND finished_at < statement_timestamp() - make_interval(days => %s)"
            " LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING 1",
            (days, days, _AT_ONCE),
            prepare=False,
        )
        removed += len(rows)
        if len(rows) < _AT_ONCE:
            return removed


def _json(params: Mapping[str, Any]) -> str:
    return msgspec.json.encode(params).decode()


def _short(text: str | None) -> str | None:
    if text is None:
        return None
    # What PostgreSQL can't keep, a job may well say.
    kept = text.replace("\x00", "").encode("utf-8", "replace").decode()
    return kept if len(kept) <= LONGEST_TEXT else f"{kept[: LONGEST_TEXT - 1]}…"
