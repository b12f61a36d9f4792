"""The metrics of requests, tasks, processes and connections to the database (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from operator import itemgetter
from time import time
from typing import Any, Final

import msgspec
import redis
from django.conf import settings
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from backend.backups import history
from backend.kernel import request_counts
from backend.kernel.process import heartbeats, liveness, restart_report
from backend.settings.schedule import BACKFILL, CHAIN, JOBS
from backend.tasks import overflow
from objects.database.statements import fetch

_QUEUES: Final = ("default", JOBS, CHAIN, BACKFILL)
MOST_DELIVERIES: Final = 10_000
_PREFIX: Final = "celery:"
_PROCESSES: Final = (
    heartbeats.WORKER,
    heartbeats.BEAT,
    heartbeats.JOBS,
    heartbeats.CHAIN,
    heartbeats.BACKFILL,
    heartbeats.REALTIME,
)
_OWN: Final = (
    "backend "  # how the names of our connections begin (backend.settings.django.database)
)


class _Headers(msgspec.Struct):
    sent_at: float | None = msgspec.field(default=None, name=heartbeats.SENT_AT)


class _Task(msgspec.Struct):
    headers: _Headers = msgspec.field(default_factory=_Headers)


def of_queues(client: redis.Redis) -> Iterator[Metric]:
    """How many tasks wait, and for how long the first of them has been waiting. Raises
    ``RedisError``."""
    length = GaugeMetricFamily("svc_queue_length", "Tasks that wait.", labels=("queue",))
    age = GaugeMetricFamily(
        "svc_queue_oldest_seconds",
        "For how long the task that is next has been waiting; missing if none waits.",
        labels=("queue",),
    )
    for queue in _QUEUES:
        name = f"{_PREFIX}{queue}"
        length.add_metric([queue], float(str(client.llen(name))))
        sent_at = _sent_at(client.lindex(name, -1))
        if sent_at is not None:
            age.add_metric([queue], max(0.0, time() - sent_at))
    length.add_metric(["overflow"], float(overflow.length(client)))
    yield length
    yield age


def _sent_at(task: Any) -> float | None:
    if task is None:
        return None
    try:
        return msgspec.json.decode(task, type=_Task).headers.sent_at
    except msgspec.DecodeError:
        return None


_DUE_DELIVERIES: Final = f"""
SELECT count(*), extract(epoch FROM now() - min(due_at)) FROM (
    SELECT due_at FROM functions_delivery
    WHERE state = 'pending' AND due_at <= now() LIMIT {MOST_DELIVERIES}
) due
"""


def of_deliveries() -> Iterator[Metric]:
    """Yield how many deliveries of webhooks are due, counted up to ``MOST_DELIVERIES``, and for how
    long the one that is due longest of them has been. Raises what ``fetch`` raises."""
    ((count, seconds),) = fetch(_DUE_DELIVERIES, (), prepare=False)
    due = GaugeMetricFamily(
        "svc_webhook_deliveries_due", "Deliveries of webhooks that wait for a worker."
    )
    due.add_metric([], float(count))
    yield due
    age = GaugeMetricFamily(
        "svc_webhook_oldest_seconds",
        "For how long a delivery of a webhook has been due; missing if none is.",
    )
    if seconds is not None:
        age.add_metric([], float(seconds))
    yield age


def of_pushes() -> Iterator[Metric]:
    """Yield how many pushes are open, and for how long a target has been due. Raises what
    ``fetch`` raises."""
    pushes = GaugeMetricFamily(
        "svc_pushes_open", "Pushes that wait or are being sent.", labels=("state",)
    )
    for state, count in fetch(
        "SELECT state, count(*) FROM objects_push WHERE state <> 'ended' AND due_at <= now()"
        " GROUP BY state",
        (),
        prepare=False,
    ):
        pushes.add_metric([state], float(count))
    yield pushes
    age = GaugeMetricFamily(
        "svc_push_oldest_seconds",
        "For how long the target that is next has been due; missing if none is.",
    )
    for (seconds,) in fetch(
        "SELECT extract(epoch FROM now() - min(t.due_at)) FROM objects_push p, LATERAL ("
        "SELECT min(due_at) AS due_at FROM objects_push_target"
        " WHERE push_id = p.id AND state = 'pending') t"
        " WHERE p.state <> 'ended' AND t.due_at <= now()",
        (),
        prepare=False,
    ):
        if seconds is not None:
            age.add_metric([], float(seconds))
    yield age


def of_backups() -> Iterator[Metric]:
    """Yield the age, size and duration of the newest verified backup, how the last run ended, and
    the interval of the schedule; what there is none of has no value."""
    state = history.state()
    last, good = state.last, state.last_good
    has_failed = None if last is None else state.has_failed
    size, seconds = (good.size, good.seconds) if good is not None else (None, None)
    values: tuple[tuple[str, str, float | None], ...] = (
        ("age_seconds", "The age of the newest verified backup.", state.age),
        ("interval_seconds", "The longest pause of the schedule of backups.", state.interval),
        ("size_bytes", "The size of the newest verified backup.", size),
        ("duration_seconds", "How long the newest verified backup took.", seconds),
        ("failed", "Whether the last backup failed.", has_failed),
    )
    for name, documentation, value in values:
        gauge = GaugeMetricFamily(f"svc_backup_{name}", documentation)
        if value is not None:
            gauge.add_metric([], float(value))
        yield gauge


def of_silences(client: redis.Redis) -> Iterator[Metric]:
    """Yield the seconds since the last heartbeat of each background process. Raises
    ``RedisError``."""
    gauge = GaugeMetricFamily(
        "svc_process_silence_seconds",
        "Seconds since the last heartbeat of a background process; without any it is missing here.",
        labels=("process",),
    )
    for process in _PROCESSES:
        heartbeat = heartbeats.latest(client, process)
        if heartbeat is not None:
            gauge.add_metric([process], max(0.0, time() - heartbeat))
    yield gauge


def of_restarts() -> Iterator[Metric]:
    """What ``script/server`` has started again."""
    counter = CounterMetricFamily(
        "svc_process_restarts",
        "How often script/server has started a process again.",
        labels=("process",),
    )
    for restart in restart_report.read(settings.DATA_FOLDER.reports):
        counter.add_metric([restart.name], restart.restarts)
    yield counter


def of_threads() -> Iterator[Metric]:
    """How many threads that answer requests have ended unexpectedly."""
    counter = CounterMetricFamily(
        "svc_request_threads_ended",
        "Threads of web processes that ended unexpectedly and were replaced.",
    )
    counter.add_metric([], liveness.ended_threads())
    yield counter


def of_requests(client: redis.Redis) -> Iterator[Metric]:
    """Answered requests and how long they took. Raises ``RedisError``."""
    labels = ("method", "status")
    number = CounterMetricFamily("svc_requests", "Requests that were answered.", labels=labels)
    seconds = CounterMetricFamily(
        "svc_request_seconds", "Seconds that answering took.", labels=labels
    )
    for (method, status), (count, duration) in sorted(request_counts.totals(client).items()):
        number.add_metric([method, str(status)], count)
        seconds.add_metric([method, str(status)], duration)
    yield number
    yield seconds
    histogram = HistogramMetricFamily(
        "svc_request_duration_seconds",
        "How long requests took, by route.",
        labels=("method", "route", "status"),
    )
    limits = [*(str(limit) for limit in request_counts.LIMITS), "+Inf"]
    for kind, taken in sorted(request_counts.durations(client).items(), key=itemgetter(0)):
        counted = list(zip(limits, accumulate(taken.counts), strict=True))
        histogram.add_metric(kind, counted, taken.seconds)
    yield histogram


def of_connections() -> Iterator[Metric]:
    """Connections to the database, and how many there may be. Raises ``DatabaseError``."""
    gauge = GaugeMetricFamily(
        "svc_database_connections",
        "Connections to our database, by process and by what they do.",
        labels=("process", "state"),
    )
    for process, state, number in fetch(_CONNECTIONS, (_OWN, _OWN), prepare=False):
        gauge.add_metric([process, state], int(number))
    yield gauge
    limit = GaugeMetricFamily(
        "svc_database_connections_limit", "How many connections the server accepts."
    )
    rows = fetch("SELECT current_setting('max_connections')::int", (), prepare=False)
    limit.add_metric([], int(rows[0][0]))
    yield limit


def of_learned_indexes() -> Iterator[Metric]:
    """Indexes that were built for the queries of classes. Raises ``DatabaseError``."""
    gauge = GaugeMetricFamily(
        "svc_learned_indexes",
        "Indexes that were built automatically, by state: valid, building, failed.",
        labels=("state",),
    )
    rows = fetch(
        "SELECT state, count(*) FROM objects_learned_index GROUP BY state", (), prepare=False
    )
    counts = {"valid": 0, "building": 0, "failed": 0} | {state: int(n) for state, n in rows}
    for state, number in counts.items():
        gauge.add_metric([state], number)
    yield gauge


_CONNECTIONS: Final = """
SELECT CASE WHEN starts_with(application_name, %s)
            THEN substr(application_name, length(%s) + 1) ELSE 'other' END,
       coalesce(state, 'unknown'), count(*)
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
GROUP BY 1, 2 ORDER BY 1, 2
"""
