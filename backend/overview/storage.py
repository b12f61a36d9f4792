"""Reading and writing minutes. A minute that is written twice counts once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction

from backend.kernel import latencies
from backend.overview.models import Hour, Minute, UserSketch

STORED: Final = timedelta(days=30)
HOUR: Final = timedelta(hours=1)
RESPONSES: Final = ("succeeded", "redirected", "rejected", "failed")
"""Numbers of responses, by the first digit of their status: 2, 3, 4, 5."""
EVENTS: Final = ("sign_ups", "failed_jobs", "failed_deliveries", "failed_pushes")
MEASURED: Final = (
    *("sockets", "queued", "queue_seconds", "chain_lag"),
    *("database_bytes", "disk_used", "disk_total"),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """A minute to be written: counts of requests by status class and group of latency, and other
    figures by the names of their columns. ``requests`` is None if no process has reported any."""

    requests: Mapping[tuple[int, int], int] | None = None
    others: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Period:
    """What happened in a part of a range; None for what couldn't be read. ``minutes`` are those
    that have counts of requests."""

    start: datetime
    minutes: int
    sums: Mapping[str, int | None]
    latencies: tuple[int, ...]
    largest: Mapping[str, float | None]


_COLUMNS: Final = ("start", "minutes", *RESPONSES, "latencies", *EVENTS, *MEASURED)
# Counts of requests are replaced by a larger sum only: after a loss of Redis, only a part of a
# minute's requests would be counted. Events are counted again, and what was measured first stays.
_ALL: Final = " + ".join(f"coalesce({{0}}.{name}, 0)" for name in ("minutes", *RESPONSES))
_IS_LARGER: Final = f"{_ALL.format('excluded')} >= {_ALL.format('stored')}"
_COMPLETE: Final = ", ".join(
    (
        *(
            f"{name} = CASE WHEN {_IS_LARGER} THEN excluded.{name} ELSE stored.{name} END"
            for name in ("minutes", *RESPONSES, "latencies")
        ),
        *(f"{name} = coalesce(excluded.{name}, stored.{name})" for name in EVENTS),
        *(f"{name} = coalesce(stored.{name}, excluded.{name})" for name in MEASURED),
    )
)
_WRITE: Final = f"""
INSERT INTO backend_minute AS stored ({", ".join(_COLUMNS)})
VALUES ({", ".join(f"%({name})s" for name in _COLUMNS)})
ON CONFLICT (start) DO UPDATE SET {_COMPLETE}
"""
_SUMS: Final = ("minutes", *RESPONSES, *EVENTS)
_AGGREGATES: Final = {
    **{name: f"sum({name})" for name in _SUMS},
    **{name: f"max({name})" for name in MEASURED},
}
_LATENCIES: Final = [f"coalesce(sum(latencies[{n}]), 0)" for n in range(1, latencies.GROUPS + 1)]
_SUM_UP: Final = f"""
INSERT INTO backend_hour (start, {", ".join(_AGGREGATES)}, latencies)
SELECT date_bin('1 hour', start, 'epoch'), {", ".join(_AGGREGATES.values())},
       ARRAY[{", ".join(_LATENCIES)}]::bigint[]
FROM backend_minute WHERE start >= %(since)s AND start < %(until)s GROUP BY 1
ON CONFLICT (start) DO UPDATE
SET {", ".join(f"{name} = excluded.{name}" for name in (*_AGGREGATES, "latencies"))}
"""


def write(minutes: Mapping[datetime, Figures]) -> None:
    """Store minutes, or complete those that are stored, and sum up their hours."""
    rows = [_row(start, figures) for start, figures in sorted(minutes.items())]
    if not rows:
        return
    hours = {"since": _hour(min(minutes)), "until": _hour(max(minutes)) + HOUR}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(_WRITE, rows)
        cursor.execute(_SUM_UP, hours)


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _row(start: datetime, figures: Figures) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_COLUMNS) | dict(figures.others)
    row |= {"start": start, "minutes": 0}
    if figures.requests is not None:
        counts = [0] * latencies.GROUPS
        responses = dict.fromkeys(RESPONSES, 0)
        for (status_class, group), number in figures.requests.items():
            if 2 <= status_class <= 5 and 0 <= group < latencies.GROUPS:
                responses[RESPONSES[status_class - 2]] += number
                counts[group] += number
        row |= {"minutes": 1, **responses, "latencies": counts}
    return row


def newest() -> datetime | None:
    """Return the newest minute that is stored."""
    return Minute.objects.order_by("-start").values_list("start", flat=True).first()


def first_without_requests(since: datetime) -> datetime | None:
    """Return the first stored minute from ``since`` on that has no counts of requests."""
    rows = Minute.objects.filter(start__gte=since, minutes=0).order_by("start")
    return rows.values_list("start", flat=True).first()


# One aggregate for each period: grouping all rows sorts them, on the disk.
_READ: Final = f"""
SELECT period.start, figures.*
FROM generate_series(%(since)s::timestamptz, %(until)s, %(step)s::interval) period (start)
CROSS JOIN LATERAL (
    SELECT {", ".join((*_AGGREGATES.values(), *_LATENCIES))}
    FROM {{table}} WHERE start >= period.start AND start < period.start + %(step)s::interval
    HAVING count(*) > 0
) figures
ORDER BY 1
"""


def read(starts: Sequence[datetime], step: timedelta) -> dict[datetime, Period]:
    """Return the figures of the periods of a length that begin at these times, by these times;
    those of which nothing is stored are missing."""
    table = "backend_hour" if step % HOUR == timedelta() else "backend_minute"
    with connection.cursor() as cursor:
        period: dict[str, Any] = {
            "since": starts[0],
            "until": starts[-1],
            "step": step,
        }
        cursor.execute(_READ.format(table=table), period)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return {row[0]: _period(row[0], row[1:]) for row in rows}


def _period(start: datetime, values: Sequence[Any]) -> Period:
    named = dict(zip(_AGGREGATES, values, strict=False))
    sums = {name: None if named[name] is None else int(named[name]) for name in _SUMS}
    return Period(
        start,
        sums.pop("minutes") or 0,
        sums,
        tuple(int(number) for number in values[len(_AGGREGATES) :]),
        {name: named[name] for name in MEASURED},
    )


def remove_old(now: datetime) -> None:
    """Remove figures and sketches that are older than ``STORED``."""
    Minute.objects.filter(start__lt=now - STORED).delete()
    Hour.objects.filter(start__lt=now - STORED).delete()
    UserSketch.objects.filter(hour__lt=now - STORED).delete()
