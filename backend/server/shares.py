"""How connections are shared by the processes that accept from one socket.

The kernel wakes all of them, and the first one takes what is there: sixteen kept connections
of a client could all go to one process of two, and be served by one core. So each process writes
its number of connections into memory that all of them share, and one that has more than another
leaves new connections to it for a moment. A process that has written nothing for a second hangs, or
is gone: nothing is left to it.
"""

from __future__ import annotations

import mmap
from time import monotonic
from typing import Final

WAIT: Final = 0.002
"""Seconds for which new connections are left to a process that has fewer."""
_NONE: Final = -1.0
_SILENT: Final = 1.0
"""Seconds after which a number doesn't count any more. Processes write theirs at each tick."""
_SLACK: Final = 8
"""One eighth more, and one, isn't more."""


class Shares:
    """The numbers of ``count`` processes. Make it before they are forked. ``wait`` stands for
    ``WAIT`` in all of them, ``silent`` for the second after which a number doesn't count."""

    def __init__(self, count: int, wait: float = WAIT, silent: float = _SILENT) -> None:
        self._wait = wait
        self._silent = silent
        self._count = max(1, count)
        # The numbers, and then when they were written (``monotonic``, which processes share).
        self._cells = memoryview(mmap.mmap(-1, 2 * 8 * self._count)).cast("d")
        for place in range(self._count):
            self._cells[place] = _NONE

    def of(self, place: int) -> Share:
        """The share of a process; ``count`` places that follow each other are those of all."""
        return Share(self._cells, place % self._count, self._wait, self._silent)


class Share:
    """The connections of one process among those of the others."""

    def __init__(self, cells: memoryview[float], place: int, wait: float, silent: float) -> None:
        self.wait = wait
        self._silent = silent
        self._cells = cells
        self._count = len(cells) // 2
        self._place = place

    def note(self, number: int) -> None:
        """Tell the others how many connections this process has."""
        self._cells[self._place] = number
        self._cells[self._count + self._place] = monotonic()

    def leave(self) -> None:
        """Tell the others that this process accepts no more."""
        self._cells[self._place] = _NONE

    def is_large(self, number: int) -> bool:
        """Whether a process with so many connections has more than another one that accepts."""
        oldest = monotonic() - self._silent
        other_counts = [
            other
            for place, other in enumerate(self._cells[: self._count])
            if other != _NONE
            and place != self._place
            and self._cells[self._count + place] >= oldest
        ]
        return bool(other_counts) and number > 1 + (least := min(other_counts)) + least // _SLACK


ALONE: Final = Shares(1).of(0)
"""That of a process that shares its sockets with no other."""
