"""Time limits for matching the queries of a network while clients of other networks wait.

Changes are sent in the order of their commits, so one network's queries delay all clients. Each
network has ``BURST`` seconds, which fill up again at ``RATE`` seconds a second. Times are
measured, not estimated: many cheap queries take as long as a few costly ones.
"""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Final

BURST: Final = 1.0
"""Seconds that a network may take at once."""
RATE: Final = 0.25
"""Seconds that it gets back each second."""
NOTICED: Final = 0.0001
"""Seconds: queries that take less aren't counted."""
_NONE: Final[frozenset[str]] = frozenset()
_MOST: Final = 1_000


class MatchingTime:
    """The time left to each network. Moments are those of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}
        self._spent: set[str] = set()

    def spend(self, networks: Collection[str], seconds: float, now: float) -> None:
        """Charge the time that a query took to its networks, in equal parts."""
        for network in networks:
            left = max(self._left_at(network, now) - seconds / len(networks), -BURST)
            self._left[network] = (left, now)
            if left <= 0:
                self._spent.add(network)
        if len(self._left) > _MOST:
            for network in list(self._left):
                if self._left_at(network, now) >= BURST:
                    del self._left[network]

    def spent(self, now: float) -> Set[str]:
        """The networks that have no time left."""
        if not self._spent:
            return _NONE
        self._spent = {network for network in self._spent if self._left_at(network, now) <= 0}
        return self._spent

    def _left_at(self, network: str, now: float) -> float:
        left, at = self._left.get(network, (BURST, now))
        return min(BURST, left + (now - at) * RATE)
