"""Whether a subscription to new heads can be relied on.

A subscription that has stopped, skips blocks or is late looks like a quiet network. So what it
announces is compared with the heads that nodes return to requests, and it is trusted only after it
has announced several blocks in a row as early as a poll would have seen them.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Final

PROOF: Final = 3
"""Blocks that a subscription has to announce in time before it is trusted."""
LONGEST_PAUSE: Final = 30.0
"""Seconds between polls of a network whose subscription is trusted."""
_MISSED: Final = 2.0  # block intervals without a head, until the network is polled
_MEASURED: Final = 8  # heads from which the block interval is taken
_MOST_VAIN: Final = 5


class Heads:
    """The heads of one network: those that a subscription announces, and those of its nodes.

    Times are seconds of one monotonic clock, ``interval`` is the network's polling interval.
    Threads may share an instance.
    """

    def __init__(self) -> None:
        self.newest: int | None = None
        """The height that was announced last, or that the network had at the subscription."""
        self._lock = Lock()
        self._is_open = False
        self._is_current = False
        self._needs_base = False
        self._proven = 0
        self._confirmed = -1
        self._missing: tuple[int, float] | None = None  # a height that isn't announced, since when
        self._interval = 0.0
        self._seen: deque[tuple[float, int]] = deque(maxlen=_MEASURED)
        self._announced = self._compared = self._vain = 0
        self._compared_at = float("-inf")

    def opened(self) -> None:
        """A subscription starts. Earlier blocks aren't expected of it."""
        with self._lock:
            self._is_open = self._needs_base = True
            self._vain = self._proven = 0

    def closed(self) -> bool:
        """The subscription has ended. Whether there was one."""
        with self._lock:
            was_open, self._is_open = self._is_open, False
            return was_open

    def announced(self, height: int | None, now: float) -> bool:
        """The subscription announces a block, without a height if the message has none. Whether
        the network should be polled: not after several announcements without a new block, unless
        that is due anyway."""
        with self._lock:
            self._announced += 1
            if height is not None:
                if self.newest is not None and height > self.newest + 1 and not self._needs_base:
                    self._proven = 0
                self.newest, self._needs_base = height, False
                if self._missing is not None and height >= self._missing[0]:
                    self._end_grace(now)
                    self._missing = None
            return self._vain < _MOST_VAIN or now - self._compared_at >= self._interval

    def compare(self, before: int | None, head: int, now: float, interval: float) -> None:
        """A node has returned ``head``, to a request made when ``before`` was the newest."""
        with self._lock:
            self._interval, self._compared_at = interval, now
            self._measure(head, now)
            if self._needs_base:
                self.newest, self._needs_base = head, False
                self._confirmed = max(self._confirmed, head)
                self._missing = None
            if self.newest is None:
                return
            low, high = sorted((self.newest if before is None else before, self.newest))
            self._is_current = low <= head <= high
            if head > high and self._missing is None:
                self._missing = (head, now)
            self._end_grace(now)
            if self._is_current and self.newest > self._confirmed:
                self._proven += 1
                self._confirmed = self.newest

    def pause(self, now: float, interval: float) -> float | None:
        """Seconds until the network has to be polled again; None while the subscription isn't
        trusted, and the polling interval holds."""
        with self._lock:
            is_trusted = self._is_open and self._is_current and self._proven >= PROOF
            if not is_trusted or self._missing is not None or len(self._seen) < 2:
                return None
            (first, low), (last, high) = self._seen[0], self._seen[-1]
            usual = (last - first) / (high - low)
            # A quiet network is polled less and less often.
            return max(interval, min(LONGEST_PAUSE, max(_MISSED * usual, now - last)))

    def _measure(self, head: int, now: float) -> None:
        highest = self._seen[-1][1] if self._seen else -1
        is_vain = head <= highest and self._announced > self._compared
        if head > highest:
            self._vain = 0
            self._seen.append((now, head))
        elif head < highest:
            self._seen.clear()
            self._seen.append((now, head))
        if is_vain:
            self._vain += 1
        self._compared = self._announced

    def _end_grace(self, now: float) -> None:
        # As late as that, polling alone would have been no later.
        if self._missing is not None and now - self._missing[1] > self._interval:
            self._proven = 0
