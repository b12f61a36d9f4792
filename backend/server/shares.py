"""How connections are shared by the processes that accept from one socket.

The kernel wakes all of them, and whoever comes first takes what is there: sixteen kept connections
of a client could all go to one process of two, and be served by one core. So each process writes
its number of connections into memory that all of them share, and one that has more than another
leaves new connections to it for a moment.
"""

from __future__ import annotations

import mmap
from typing import Final

WAIT: Final = 0.002
"""Seconds for which new connections are left to a process that has fewer."""
_NONE: Final = -1
_SLACK: Final = 8
"""One eighth more, and one, isn't more."""


class Shares:
    """The numbers of ``count`` processes. Make it before they are forked. ``wait`` stands for
    ``WAIT`` in all of them."""

    def __init__(self, count: int, wait: float = WAIT) -> None:
        self._wait = wait
        self._numbers = memoryview(mmap.mmap(-1, 4 * max(1, count))).cast("i")
        for place in range(len(self._numbers)):
            self._numbers[place] = _NONE

    def of(self, place: int) -> Share:
        """The share of a process; ``count`` places that follow each other are those of all."""
        return Share(self._numbers, place % len(self._numbers), self._wait)


class Share:
    """The connections of one process among those of the others."""

    def __init__(self, numbers: memoryview[int], place: int, wait: float) -> None:
        self.wait = wait
        self._numbers = numbers
        self._place = place

    def note(self, number: int) -> None:
        """Tell the others how many connections this process has."""
        self._numbers[self._place] = number

    def leave(self) -> None:
        """Tell the others that this process accepts no more."""
        self._numbers[self._place] = _NONE

    def is_large(self, number: int) -> bool:
        """Whether a process with so many connections has more than another one that accepts."""
        others = [
            other
            for place, other in enumerate(self._numbers)
            if other != _NONE and place != self._place
        ]
        return bool(others) and number > 1 + (least := min(others)) + least // _SLACK


ALONE: Final = Shares(1).of(0)
"""That of a process that shares its sockets with no other."""
