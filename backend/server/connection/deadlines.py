"""The deadlines of one connection. Pure: times come from the caller, in seconds."""

from __future__ import annotations

from backend.server.limits import Limits


class Pace:
    """The average rate of a transfer since a time and a number of bytes."""

    __slots__ = ("_size", "_start")

    def __init__(self, start: float, size: int = 0) -> None:
        self._start = start
        self._size = size

    def is_below(self, now: float, size: int, grace: float, min_rate: int) -> bool:
        """Whether the rate is below ``min_rate`` after ``grace`` seconds."""
        elapsed = now - self._start
        return elapsed > grace and size - self._size < min_rate * elapsed


class Linger:
    """How long what a client sends after the last response is read and discarded."""

    __slots__ = ("_active_at", "_limits", "_until")

    def __init__(self, now: float, limits: Limits) -> None:
        self._limits = limits
        self.restart(now)

    def restart(self, now: float) -> None:
        """Count from now on: the response has only now been sent."""
        self._until = now + self._limits.linger_time
        self._active_at = now

    def note(self, now: float) -> None:
        """Note that the client has sent something."""
        self._active_at = now

    def is_over(self, now: float) -> bool:
        """Whether the client has had its time, or has sent nothing for a while."""
        return now > self._until or now - self._active_at > self._limits.linger_idle
