"""Pushes in local time: when the clocks of which time zones show a time.

A push without a zone in its time is sent in waves. A wave is an offset from UTC, in minutes; it has
the zones that are at this offset when their clocks show the time. Waves go from east to west, in
the order in which their moments come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

UTC_OFFSET = 0
"""The wave of installations without a time zone, or with one that isn't known."""


@lru_cache(maxsize=32)
def zones_by_offset(local: datetime) -> Mapping[int, tuple[str, ...]]:
    """Return the names of all time zones by their offset at this local time, which is naive."""
    zones: dict[int, list[str]] = defaultdict(list, {UTC_OFFSET: []})
    for name in sorted(available_timezones()):
        offset = local.replace(tzinfo=ZoneInfo(name)).utcoffset() or timedelta()
        zones[round(offset.total_seconds() / 60)].append(name)
    return {offset: tuple(names) for offset, names in zones.items()}


def next_wave(local: datetime, after: int | None) -> int | None:
    """Return the offset of the wave after another one, or of the first; None at the end."""
    offsets = sorted(zones_by_offset(local), reverse=True)
    return next((offset for offset in offsets if after is None or offset < after), None)


def moment_of(push_at: datetime, offset: int) -> datetime:
    """Return the moment at which clocks at an offset show the time of ``push_at``."""
    return push_at - timedelta(minutes=offset)


def hours(offset: int) -> str:
    """Return an offset as keys of ``sentPerUTCOffset`` have it: in hours, ``-5`` or ``5:30``."""
    hour, minutes = divmod(abs(offset), 60)
    sign = "-" if offset < 0 else ""
    return f"{sign}{hour}:{minutes:02}" if minutes else f"{sign}{hour}"
