"""Open connections that no request uses: some for each origin, and some altogether."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from time import monotonic
from weakref import WeakSet

from backend.kernel.outgoing.connection import Connection, Origin


@dataclass(frozen=True, eq=False)
class _Idle:
    connection: Connection
    since: float


class IdleConnections:
    """Connections that may be used again for ``seconds``. Safe to be used by several threads.

    A connection on which something arrives meanwhile is closed: it would be taken for the response
    to the next request. ``lost`` counts those, and the connections that ``close`` and ``note_loss``
    ended.
    """

    def __init__(self, seconds: float, per_origin: int, total: int) -> None:
        self.lost = 0
        self._seconds = seconds
        self._per_origin = per_origin
        self._total = total
        self._start()
        _instances.add(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []  # the longest idle first

    def take(self, origin: Origin) -> Connection | None:
        """Return a connection that can be used again, or None."""
        while True:
            with self._lock:
                latest = next(
                    (idle for idle in reversed(self._idle) if idle.connection.origin == origin),
                    None,
                )
                if latest is None:
                    return None
                self._idle.remove(latest)
            if not self._is_old(latest):
                if latest.connection.is_quiet():
                    return latest.connection
                self.note_loss()
            latest.connection.close()

    def store(self, connection: Connection) -> None:
        """Store a connection for later requests. Close those that are too old or too many."""
        with self._lock:
            self._idle.append(_Idle(connection, monotonic()))
            same = [idle for idle in self._idle if idle.connection.origin == connection.origin]
            leaving = [
                idle
                for place, idle in enumerate(self._idle, 1)
                if self._is_old(idle)
                or idle in same[: -self._per_origin]
                or place <= len(self._idle) - self._total
            ]
            self._idle = [idle for idle in self._idle if idle not in leaving]
        for idle in leaving:
            idle.connection.close()

    def note_loss(self) -> None:
        """Count a connection that ended before its time."""
        with self._lock:
            self.lost += 1

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            leaving, self._idle = self._idle, []
            self.lost += len(leaving)
        for idle in leaving:
            idle.connection.close()

    def forget(self) -> None:
        """Drop what belongs to the parent of a forked process, whose lock may be held."""
        idle = self._idle
        self._start()
        for each in idle:
            each.connection.close()  # here alone: the parent's stays open

    def __del__(self) -> None:
        for idle in self._idle:
            idle.connection.close()

    def _is_old(self, idle: _Idle) -> bool:
        return monotonic() - idle.since >= self._seconds


_instances: WeakSet[IdleConnections] = WeakSet()


def _forget() -> None:
    for instance in _instances:
        instance.forget()


os.register_at_fork(after_in_child=_forget)
