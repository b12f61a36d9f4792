"""Durations of requests as a small histogram of fixed size, and percentiles of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

_STEPS: Final = 4  # groups from one duration to twice of it
LIMITS: Final = tuple(0.001 * 2 ** (place / _STEPS) for place in range(58))
"""Durations in seconds up to which requests are counted together, from 1 ms to 19 s; one more
group is above them."""
GROUPS: Final = len(LIMITS) + 1
ERROR: Final = 2 ** (1 / _STEPS) - 1
"""The largest relative error of ``percentile``, 19 percent, for durations between the first and the
last of ``LIMITS``."""


def group_of(seconds: float) -> int:
    """Return the place of a duration in the histogram."""
    return bisect_left(LIMITS, seconds)


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return the duration in seconds that ``share`` of the requests didn't exceed.

    It is in the group of the exact one, so that it is at most ``ERROR`` away, at the place that it
    has if the durations of a group are spread evenly. None without any request.
    """
    total = sum(counts)
    if total == 0:
        return None
    rank = share * total
    sums = [*accumulate(counts)]
    place = next(place for place, reached in enumerate(sums) if reached and reached >= rank)
    if place == 0:
        return LIMITS[0]
    if place == len(LIMITS):
        return LIMITS[-1]
    inside = max(0.0, rank - sums[place - 1]) / counts[place]
    return float(LIMITS[place - 1] * 2 ** (inside / _STEPS))
