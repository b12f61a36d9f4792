"""When a process that has died is started again, and when its deaths are reported."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final

WINDOW: Final = 60.0
"""Seconds for which a death counts."""
FAILING: Final = 5
"""Deaths within the window from which on a process is reported as failing."""
PAUSES: Final = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before the next start, by the number of earlier deaths in the window."""


class Restarts:
    """The deaths of one process, or of one group of equal processes."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._deaths: deque[float] = deque(maxlen=len(PAUSES))
        self.total = 0

    def died(self) -> float:
        """Note a death. Seconds until the process is to be started again."""
        recent = self.recent
        self._deaths.append(self._now())
        self.total += 1
        return PAUSES[min(recent, len(PAUSES) - 1)]

    @property
    def recent(self) -> int:
        """Deaths within the window, as many as are remembered."""
        begin = self._now() - WINDOW
        return sum(death > begin for death in self._deaths)

    @property
    def is_failing(self) -> bool:
        """Whether the process died ``FAILING`` times within the window."""
        return self.recent >= FAILING
