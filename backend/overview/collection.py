"""The task that stores minutes: what web processes have counted, what happened, what is measured.

It runs a few times a minute and writes the last minutes again, so a run that is missing, killed or
doubled changes nothing. Minutes for which no run came in time are made up for as far as Redis and
the database still have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from django.db import connection
from prometheus_client.core import Metric

from backend.endpoints import process_metrics
from backend.kernel import request_counts
from backend.kernel.connections.redis import asking_once
from backend.kernel.process import reports
from backend.kernel.request_counts import MINUTE
from backend.logs.setup import get_logger
from backend.overview import active_users, storage
from backend.overview.reading import PROBLEMS, limited_statements
from backend.overview.storage import Figures
from chain.networks.lag import lags
from realtime.metrics import metrics as of_sockets

_LATE: Final = 3
"""Minutes that are written again: processes add their counts a few seconds late."""
_FIRST: Final = 60
"""Minutes that the first run looks at."""
_MOST: Final = 1440
"""Minutes that one run makes up for."""
_TIMEOUT: Final = 3.0  # seconds for each statement, and each response of Redis

_Values = dict[str, float | None]

log = get_logger("overview")


def collect(now: datetime | None = None) -> None:
    """Write the last minutes that are over. Raises one of ``PROBLEMS`` if they can't be written."""
    now = now or datetime.now(UTC)
    this = int(now.timestamp()) // MINUTE
    newest = storage.newest()
    last = this - _FIRST if newest is None else int(newest.timestamp()) // MINUTE
    # While Redis was away, processes have waited with their counts.
    waiting = storage.first_without_requests(_time(this - request_counts.MOST_MINUTES))
    first = min(last + 1, this - _LATE)
    if waiting is not None:
        first = min(first, int(waiting.timestamp()) // MINUTE)
    minutes = range(max(first, this - _MOST), this)
    requests = _part("requests", lambda: _requests(minutes), {})
    values: dict[int, _Values] = {minute: {} for minute in minutes}
    for name, sql in _EVENTS.items():
        counts = _part(name, lambda sql=sql: _events(sql, minutes), None)  # type: ignore[misc]
        if counts is not None:
            for minute in minutes:
                values[minute][name] = counts.get(minute, 0)
    if last < this - 1:
        for name, read in _MEASURED.items():
            values[this - 1] |= _part(name, read, {})
    storage.write(
        {_time(minute): Figures(requests.get(minute), values[minute]) for minute in minutes}
    )
    _part("active users", lambda: _store_active_users(now), None)
    storage.remove_old(now)


def _time(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * MINUTE, UTC)


def _part(name: str, read: Callable[[], Any], otherwise: Any) -> Any:
    """Return a part of the figures, or ``otherwise`` if it can't be read."""
    try:
        return read()
    except PROBLEMS as error:
        log.warning("figures can't be read", part=name, error=type(error).__name__)
        return otherwise


# -- Counted by web processes ----------------------------------------------------------------------


def _requests(minutes: range) -> dict[int, dict[tuple[int, int], int]]:
    """Return the counts of the minutes in which a web process has reported."""
    with (
        asking_once(settings.REDIS_URL, _TIMEOUT) as client,
        client.pipeline(transaction=False) as pipeline,
    ):
        for minute in minutes:
            pipeline.hgetall(request_counts.minute_key(minute))
        hashes: list[dict[bytes, bytes]] = pipeline.execute()
    return {
        minute: dict(_counts(fields))
        for minute, fields in zip(minutes, hashes, strict=True)
        if fields
    }


def _counts(fields: Mapping[bytes, bytes]) -> Iterator[tuple[tuple[int, int], int]]:
    for name, number in fields.items():
        status_class, _, group = name.decode().partition(" ")
        if group:  # else it is ``request_counts.REPORTS``
            yield (int(status_class), int(group)), int(number)


def _store_active_users(now: datetime) -> None:
    with asking_once(settings.REDIS_URL, _TIMEOUT) as client:
        active_users.store(client, now)


# -- Rows of the database --------------------------------------------------------------------------

_EVENTS: Final = {
    "sign_ups": "SELECT created_at AS at FROM objects_user"
    " WHERE created_at >= %(since)s AND created_at < %(until)s",
    "failed_jobs": "SELECT finished_at AS at FROM functions_job_status WHERE status = 'failed'"
    " AND finished_at >= %(since)s AND finished_at < %(until)s",
    "failed_deliveries": "SELECT ended_at AS at FROM functions_delivery WHERE state = 'dead'"
    " AND ended_at >= %(since)s AND ended_at < %(until)s",
    # Devices refuse pushes every day; a push has failed if it reached none.
    "failed_pushes": "SELECT ended_at AS at FROM objects_push WHERE created_at >= %(oldest)s"
    " AND ended_at >= %(since)s AND ended_at < %(until)s"
    " AND (error <> '' OR (failed > 0 AND sent = 0))",
}
"""What happened at which time, by the column of the minutes that counts it."""


def _events(sql: str, minutes: range) -> dict[int, int]:
    since = _time(minutes[0])
    with limited_statements(_TIMEOUT), connection.cursor() as cursor:
        cursor.execute(
            "SELECT floor(extract(epoch FROM at) / 60)::bigint, count(*)"
            f" FROM ({sql}) events GROUP BY 1",
            {"since": since, "until": _time(minutes[-1] + 1), "oldest": since - storage.STORED},
        )
        return {int(minute): int(number) for minute, number in cursor.fetchall()}


# -- Measured --------------------------------------------------------------------------------------


def _of_redis() -> _Values:
    with asking_once(settings.REDIS_URL, _TIMEOUT) as client:
        length, age = process_metrics.of_queues(client)
        disks = [report for report in reports.read(client) if report.disk_total]
    fullest = max(disks, key=lambda report: report.disk_used / report.disk_total, default=None)
    return {
        "queued": sum(values_of(length).values()),
        "queue_seconds": max(values_of(age).values(), default=0.0),
        "disk_used": None if fullest is None else fullest.disk_used,
        "disk_total": None if fullest is None else fullest.disk_total,
    }


def values_of(metric: Metric) -> dict[str, float]:
    """Return the values of a metric with one label, by that label."""
    return {next(iter(sample.labels.values())): sample.value for sample in metric.samples}


def _of_sockets() -> _Values:
    return {"sockets": open_sockets(of_sockets())}


def open_sockets(metrics: Iterable[Metric]) -> float:
    """Return how many sockets are open, by the metrics of realtime processes."""
    return sum(
        sum(sample.value for sample in metric.samples)
        for metric in metrics
        if metric.name == "svc_realtime_connections"
    )


def _of_chain() -> _Values:
    with limited_statements(_TIMEOUT):
        seconds = [lag.seconds for lag in lags().values() if lag.seconds is not None]
    return {"chain_lag": max(seconds, default=None)}


def _of_database() -> _Values:
    with limited_statements(_TIMEOUT), connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return {"database_bytes": int(cursor.fetchone()[0])}


_MEASURED: Final[Mapping[str, Callable[[], _Values]]] = {
    "queues": _of_redis,
    "sockets": _of_sockets,
    "chain": _of_chain,
    "database": _of_database,
}
