"""Numbers of log records over time, by the status class of requests and the level of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from backend.logs import search
from backend.logs.filters import LogFilter
from backend.logs.search import Entry, Page

CATEGORIES: Final = ("info", "2xx", "3xx", "4xx", "5xx", "warning", "error")
"""Status classes of requests, and levels of other records."""
_MOST_BARS: Final = 75
_MINUTE: Final = 60
_HOUR: Final = 3600
_STEPS: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(_MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * n for n in (1, 2, 3, 6, 12, 24, 48, 7 * 24, 14 * 24, 28 * 24)),
)
_LEVELS: Final = {"warning": "warning", "error": "error", "critical": "error"}


@dataclass
class Chart:
    """Numbers of records in bars of ``step`` milliseconds, from ``start`` on."""

    start: int
    step: int
    bars: list[dict[str, int]]
    counted_from: int | None = None
    """The time from which on the numbers are complete; None if all of them are."""

    @property
    def total(self) -> dict[str, int]:
        """The numbers of all bars by category, without those that are 0."""
        sums = {kind: sum(bar.get(kind, 0) for bar in self.bars) for kind in CATEGORIES}
        return {kind: number for kind, number in sums.items() if number}

    def add(self, entry: Entry) -> None:
        """Count a record."""
        place = min(max(0, (entry.milliseconds - self.start) // self.step), len(self.bars) - 1)
        counts, kind = self.bars[place], category(entry.fields)
        counts[kind] = counts.get(kind, 0) + 1


def empty_chart(since: datetime, until: datetime) -> Chart:
    """Return a chart of a period without records: at most some seventy bars of round length."""
    first, last = search.milliseconds(since), search.milliseconds(until)
    seconds = max(1.0, (last - first) / 1000)
    step = 1000 * next((s for s in _STEPS if seconds / s <= _MOST_BARS), _STEPS[-1])
    start = first // step * step
    bars = min(max(1, -(-(last + 1 - start) // step)), 10 * _MOST_BARS)
    return Chart(start, step, [{} for _ in range(bars)])


def category(fields: Mapping[str, Any]) -> str:
    """Return the one of ``CATEGORIES`` that a record counts as."""
    status = fields.get("status")
    if fields.get("logger") == "request" and isinstance(status, int) and 200 <= status < 600:
        return f"{status // 100}xx"
    level = fields.get("level")
    return _LEVELS.get(level, "info") if isinstance(level, str) else "info"


def search_and_count(
    criteria: LogFilter, since: datetime, until: datetime, *, limit: int = 100
) -> tuple[Page, Chart]:
    """Return the newest matching records of a period, and the numbers of all of them.

    What couldn't be read in time is missing in both, and they say so. Raises ``LogUnavailable``.
    """
    chart = empty_chart(since, until)
    entries: list[Entry] = []
    older: str | None = None
    for block in search.scan(criteria, since=since, until=until):
        for entry in block.entries:
            chart.add(entry)
        if len(entries) < limit:
            entries += block.entries
            if len(entries) >= limit:
                older = entries[limit - 1].place
                del entries[limit:]
        if block.is_cut:
            chart.counted_from = search.milliseconds_of(block.last)
            older = older or block.last
    return Page(entries, older), chart
