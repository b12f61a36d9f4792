"""Durations and ages in words."""

from __future__ import annotations

from datetime import UTC, datetime

from backend.kernel.texts.counted import counted


def duration(seconds: float) -> str:
    """Return a duration with two digits or so: ``8.5 ms``, ``120 ms``, ``2.4 s``, ``3 minutes``."""
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return span(seconds)


def span(seconds: float) -> str:
    """Return a longer duration in its largest whole unit: ``45 seconds``, ``2 days``."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return counted(int(seconds // length), unit)
    return counted(int(max(0.0, seconds)), "second")


def age(moment: datetime) -> str:
    """Return how long ago a moment was."""
    return f"{span((datetime.now(UTC) - moment).total_seconds())} ago"
