"""Whether a provider can be compared with others, by how its last comparisons went.

A provider that answers for its head and refuses or fails everything else would never have a say,
and nothing would become final without anybody noticing; one that takes seconds would make every
poll wait. Both are left out: the first one for longer each time, the second one for a minute, so
that it is still compared now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

FEWEST: Final = 3
"""Comparisons in a row that fail or are slow before a provider is left out."""
SHORTEST: Final = 15.0
"""Seconds that failures have to last: those of a moment say nothing."""
SLOW: Final = 2.0
"""Seconds from which on a comparison is slow."""
PAUSE: Final = 60.0
LONGEST_PAUSE: Final = 600.0


class Comparisons:
    """The comparisons of one provider, as one process knows them."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._failures = 0
        self._failing_since = 0.0
        self._pause = PAUSE
        self._slow = 0

    def failed(self) -> float | None:
        """Note a failure. Seconds for which the provider is to be left out, or None."""
        if self._failures == 0:
            self._failing_since = self._now()
        self._failures += 1
        if self._failures < FEWEST or self._now() - self._failing_since < SHORTEST:
            return None
        pause, self._pause = self._pause, min(LONGEST_PAUSE, 2 * self._pause)
        return pause

    def succeeded(self, seconds: float) -> float | None:
        """Note a comparison that took so many seconds. Seconds for which the provider is to be left
        out since it is slow, or None."""
        self._failures, self._pause = 0, PAUSE
        self._slow = self._slow + 1 if seconds > SLOW else 0
        return PAUSE if self._slow >= FEWEST else None
