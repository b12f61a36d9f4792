"""Signs of life that processes leave in memory which they share with their supervisor.

A process that has begun to leave signs and leaves none for a while hangs: its event loop or its
consumer doesn't run any more. Signs need neither Redis nor a connection, so they say nothing about
other processes. In a process without a supervisor they do nothing.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from time import monotonic
from typing import Final

_PLACE: Final = struct.Struct("d")
_NONE: Final = 0.0


class Signs:
    """A place in shared memory for each of ``count`` processes."""

    def __init__(self, count: int, now: Callable[[], float] = monotonic) -> None:
        self._memory = mmap.mmap(-1, max(1, count) * _PLACE.size)
        self._now = now

    def leave(self, place: int) -> None:
        """Leave a sign of life."""
        self._write(place, self._now())

    def clear(self, place: int) -> None:
        """Nothing is expected of the place until its next sign."""
        self._write(place, _NONE)

    def age(self, place: int) -> float:
        """Seconds since the last sign; 0 if none is expected."""
        (left,) = _PLACE.unpack_from(self._memory, place * _PLACE.size)
        return 0.0 if left == _NONE else max(0.0, self._now() - left)

    def _write(self, place: int, value: float) -> None:
        _PLACE.pack_into(self._memory, place * _PLACE.size, value)


_own: tuple[Signs, int] | None = None


def own(signs: Signs, place: int) -> None:
    """Have this process leave its signs in this place."""
    global _own
    _own = signs, place


def leave() -> None:
    """Leave a sign of life of this process."""
    if _own is not None:
        signs, place = _own
        signs.leave(place)


def pause() -> None:
    """This process waits for something that may take long, such as Redis: no sign is expected
    until it leaves the next one."""
    if _own is not None:
        signs, place = _own
        signs.clear(place)
