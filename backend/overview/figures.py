"""The stored figures of a range as sums, percentiles and charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from django.db import connection

from backend.kernel import latencies
from backend.overview import storage
from backend.overview.ranges import Range
from backend.overview.storage import RESPONSES, Period

Unit = Literal["", "seconds", "bytes"]
_Values = list[float | None]
_GROWTH: Final = timedelta(days=7)
_ENOUGH: Final = timedelta(hours=6)
"""Data that a statement on the growth of the disk needs."""
_SOON: Final = 365.0
"""Days for which a full disk is predicted."""


@dataclass(frozen=True, slots=True)
class Series:
    """A line or the bars of a chart. ``colour`` is one of charts.js, by its meaning."""

    label: str
    colour: str
    values: _Values


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart for ``charts.js``, with a summary in words."""

    name: str
    title: str
    kind: Literal["bars", "lines"]
    unit: Unit
    series: list[Series]
    times: list[float]

    @property
    def is_empty(self) -> bool:
        return not any(value for line in self.series for value in line.values)

    @property
    def data(self) -> dict[str, Any]:
        """Return what ``charts.js`` reads."""
        return {
            "kind": self.kind,
            "unit": self.unit,
            "times": self.times,
            "series": [
                {"label": line.label, "colour": line.colour, "values": line.values}
                for line in self.series
            ],
        }


@dataclass(frozen=True, slots=True)
class Figures:
    """The periods of a range; None for a period of which nothing is stored."""

    starts: list[datetime]
    periods: list[Period | None]

    def total(self, *names: str) -> int | None:
        """Return the sum of columns over the range; None if nothing is stored."""
        numbers = [
            number
            for period in self.periods
            if period is not None
            for name in names
            if (number := period.sums[name]) is not None
        ]
        return sum(numbers) if numbers else None

    @property
    def minutes(self) -> int:
        """Return how many minutes have counts of requests."""
        return sum(period.minutes for period in self.periods if period is not None)

    def percentile(self, share: float) -> float | None:
        """Return a percentile of the durations of all requests, in seconds."""
        periods = [period.latencies for period in self.periods if period is not None]
        return latencies.percentile([sum(counts) for counts in zip(*periods, strict=True)], share)

    def rate(self, *names: str) -> _Values:
        """Return the sum of columns in each period, a minute."""
        return [
            _rate(sum(period.sums[name] or 0 for name in names), period.minutes)
            if period is not None
            else None
            for period in self.periods
        ]

    def sums(self, *names: str) -> _Values:
        """Return the sum of columns in each period."""
        return self._each(lambda period: sum(period.sums[name] or 0 for name in names))

    def largest(self, name: str) -> _Values:
        """Return the largest value of a column in each period."""
        return self._each(lambda period: period.largest[name])

    def latest(self, name: str) -> float | None:
        """Return the newest value of a column that was measured."""
        return next((value for value in reversed(self.largest(name)) if value is not None), None)

    def percentiles(self, share: float) -> _Values:
        """Return a percentile in each period, in seconds."""
        return self._each(lambda period: latencies.percentile(period.latencies, share))

    def _each(self, value: Callable[[Period], float | None]) -> _Values:
        return [None if period is None else value(period) for period in self.periods]


def _rate(number: float, minutes: int) -> float | None:
    return round(number / minutes, 2) if minutes else None


def read(time_range: Range, now: datetime) -> Figures:
    """Return the figures of a range that ends now."""
    starts = time_range.starts(now)
    stored = storage.read(starts, time_range.step)
    return Figures(starts, [stored.get(start) for start in starts])


def charts(figures: Figures, *, has_networks: bool) -> list[Chart]:
    """Return the charts of the start page."""
    times = [start.timestamp() for start in figures.starts]

    def chart(
        name: str, title: str, kind: Literal["bars", "lines"], unit: Unit, *series: Series
    ) -> Chart:
        return Chart(name, title, kind, unit, list(series), times)

    responses = zip(
        ("2xx", "3xx", "4xx", "5xx"), ("first", "calm", "warning", "bad"), RESPONSES, strict=True
    )
    shown = [
        chart(
            "requests",
            "Requests a minute",
            "bars",
            "",
            *(Series(label, colour, figures.rate(name)) for label, colour, name in responses),
        ),
        chart(
            "durations",
            "Duration of requests",
            "lines",
            "seconds",
            Series("p95", "second", figures.percentiles(0.95)),
            Series("p50", "first", figures.percentiles(0.5)),
        ),
        chart(
            "failures",
            "Failed jobs, webhooks and pushes",
            "bars",
            "",
            Series("Jobs", "bad", figures.sums("failed_jobs")),
            Series("Webhooks", "warning", figures.sums("failed_deliveries")),
            Series("Pushes", "second", figures.sums("failed_pushes")),
        ),
        chart(
            "sign-ups", "Sign-ups", "bars", "", Series("Users", "first", figures.sums("sign_ups"))
        ),
        chart(
            "sockets",
            "Open sockets",
            "lines",
            "",
            Series("Sockets", "first", figures.largest("sockets")),
        ),
        chart(
            "queue",
            "Longest wait in a queue",
            "lines",
            "seconds",
            Series("Wait", "first", figures.largest("queue_seconds")),
        ),
        chart(
            "disk",
            "Disk and database",
            "lines",
            "bytes",
            Series("Disk in use", "second", figures.largest("disk_used")),
            Series("Database", "first", figures.largest("database_bytes")),
        ),
    ]
    if has_networks:
        lag = Series("Lag", "first", figures.largest("chain_lag"))
        shown.append(chart("chain", "Longest time since a poll", "lines", "seconds", lag))
    return shown


_SLOPE: Final = """
SELECT regr_slope(disk_used, extract(epoch FROM start)::float8), min(start), max(start)
FROM backend_hour WHERE start >= %(since)s AND disk_total = %(total)s
"""


def full_at(used: float, total: float, now: datetime) -> datetime | None:
    """Return when a disk will be full if it grows as in the last seven days.

    None if it doesn't grow, won't be full within a year, or if there are less than six hours of
    figures.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SLOPE, {"since": now - _GROWTH, "total": int(total)})
        slope, first, last = cursor.fetchone()
    if slope is None or slope <= 0 or last - first < _ENOUGH:
        return None
    days = (total - used) / float(slope) / 86_400
    return now + timedelta(days=days) if days < _SOON else None


def sparkline(values: Sequence[float | None], width: int = 120, height: int = 28) -> list[str]:
    """Return the lines of a small chart, each the ``points`` of an SVG polyline."""
    top = max((value for value in values if value is not None), default=0)
    if top <= 0:
        return []
    lines: list[list[str]] = [[]]
    step = width / max(1, len(values) - 1)
    for place, value in enumerate(values):
        if value is None:
            lines.append([])
        else:
            lines[-1].append(f"{place * step:.1f},{height - 2 - value / top * (height - 4):.1f}")
    return [" ".join(line) for line in lines if len(line) > 1]
