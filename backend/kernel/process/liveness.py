"""Heartbeats of processes, in memory that they share with their supervisor.

A process that has sent a heartbeat and then sends none for ``supervisor.SILENCE`` seconds is
considered hung. Heartbeats use shared memory, so sending one needs no connection. A process that
waits for PostgreSQL or Redis isn't hung: it says so with ``pause`` or ``waiting``, so that an
engine that is away or doesn't answer ends no other process. Without a supervisor the functions do
nothing.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Final

_PLACE: Final = struct.Struct("d")
_COUNT: Final = struct.Struct("Q")
_NONE: Final = 0.0
_HANGING: Final = -1.0
_BEGUN: Final = b"\1"


class Signs:
    """A place in shared memory for each of ``count`` processes.

    While a process runs, it alone writes to its place.
    """

    def __init__(self, count: int, now: Callable[[], float] = monotonic) -> None:
        self._memory = mmap.mmap(-1, max(1, count) * _PLACE.size)
        self._begun = mmap.mmap(-1, max(1, count))
        self._ended_threads = mmap.mmap(-1, max(1, count) * _COUNT.size)
        self._count = count
        self._now = now
        self._reset_at = 0.0

    def leave(self, place: int) -> None:
        """Send a heartbeat."""
        self._write(place, self._now())
        self._begun[place : place + 1] = _BEGUN

    def pause(self, place: int) -> None:
        """Expect no heartbeat from the place until it sends the next one. Counts as the first."""
        self._write(place, _NONE)
        self._begun[place : place + 1] = _BEGUN

    def hang(self, place: int) -> None:
        """Say that the process at this place can't do its work: it is ended as if it were silent.

        Its next heartbeat withdraws this.
        """
        self._write(place, _HANGING)

    def is_hanging(self) -> bool:
        """Whether one of the processes has said so, and hasn't been replaced yet."""
        return any(self._read(place) == _HANGING for place in range(self._count))

    def count_ended_thread(self, place: int) -> None:
        """Count a thread that has ended unexpectedly, also across restarts of the process."""
        offset = place * _COUNT.size
        (count,) = _COUNT.unpack_from(self._ended_threads, offset)
        _COUNT.pack_into(self._ended_threads, offset, count + 1)

    def ended_threads(self) -> int:
        """How many threads of all processes have ended unexpectedly."""
        return sum(count for (count,) in _COUNT.iter_unpack(self._ended_threads))

    def has_begun(self, place: int) -> bool:
        """Whether the process has sent a heartbeat or paused since ``clear``."""
        return self._begun[place : place + 1] == _BEGUN

    def clear(self, place: int) -> None:
        """Expect no heartbeat from the place, for a new process, until it sends its first one."""
        self._write(place, _NONE)
        self._begun[place : place + 1] = b"\0"

    def reset(self) -> None:
        """Count silence from now on, in this process. Writes to no place: a process that pauses at
        the same moment stays paused."""
        self._reset_at = self._now()

    def age(self, place: int) -> float:
        """Seconds since the last heartbeat or ``reset``; 0 if none is expected, infinite if the
        process has said that it hangs."""
        left = self._read(place)
        if left == _HANGING:
            return inf
        return 0.0 if left == _NONE else max(0.0, self._now() - max(left, self._reset_at))

    def _read(self, place: int) -> float:
        (value,) = _PLACE.unpack_from(self._memory, place * _PLACE.size)
        return float(value)

    def _write(self, place: int, value: float) -> None:
        _PLACE.pack_into(self._memory, place * _PLACE.size, value)


_own: tuple[Signs, int] | None = None


def own(signs: Signs, place: int) -> None:
    """Have this process send its heartbeats to this place."""
    global _own
    _own = signs, place


def place() -> int | None:
    """The place of this process; those of one role follow each other. None without a supervisor."""
    return None if _own is None else _own[1]


def leave() -> None:
    """Send a heartbeat of this process."""
    if _own is not None:
        signs, own_place = _own
        signs.leave(own_place)


def hang() -> None:
    """Say that this process can't do its work, so that its supervisor replaces it."""
    if _own is not None:
        signs, own_place = _own
        signs.hang(own_place)


def is_hanging() -> bool:
    """Whether one of the processes of this supervisor has said that it hangs."""
    return _own is not None and _own[0].is_hanging()


def count_ended_thread() -> None:
    """Count a thread of this process that has ended unexpectedly. Call it in one thread."""
    if _own is not None:
        signs, own_place = _own
        signs.count_ended_thread(own_place)


def ended_threads() -> int:
    """How many threads of the processes of this supervisor have ended unexpectedly."""
    return 0 if _own is None else _own[0].ended_threads()


def pause() -> None:
    """Expect no heartbeat of this process until it sends the next one, while it waits for something
    that may take long, such as Redis."""
    if _own is not None:
        signs, own_place = _own
        signs.pause(own_place)


@contextmanager
def waiting() -> Iterator[None]:
    """Expect no heartbeat of this process within the block, and send one at its end."""
    pause()
    try:
        yield
    finally:
        leave()
