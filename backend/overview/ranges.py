"""The ranges of time that the start page can show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class Range:
    """A range that ends now, in periods of ``step``."""

    name: str
    title: str
    span: timedelta
    step: timedelta

    def starts(self, now: datetime) -> list[datetime]:
        """Return the start of each period, oldest first; they are multiples of ``step`` since the
        epoch. A minute that isn't over is no period."""
        step = int(self.step.total_seconds())
        last = int((now - timedelta(minutes=1)).timestamp()) // step
        number = int(self.span.total_seconds()) // step
        return [
            datetime.fromtimestamp(place * step, UTC)
            for place in range(last - number + 1, last + 1)
        ]


RANGES: Final = {
    each.name: each
    for each in (
        Range("hour", "Last hour", timedelta(hours=1), timedelta(minutes=1)),
        Range("day", "Last day", timedelta(days=1), timedelta(minutes=10)),
        Range("month", "Last 30 days", timedelta(days=30), timedelta(hours=4)),
    )
}
"""The ranges by their names, the default first."""
