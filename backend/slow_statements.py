"""Slow database statements of one client address may hold only a share of a process's threads.

A statement registers by ``enter`` before it runs and by ``leave`` afterwards; which statements
register is up to ``objects.statement_limits``. A statement is slow once its request has spent
``SLOW_AFTER`` seconds in the database. An address that has its share of slow statements running is
refused, at the latest when the statement begins; ``excess`` names statements that became slow
together with others and have to be stopped. An address that reached its share is held to it for
``MEMORY`` seconds, fast statements included, so that it can't take every thread anew whenever its
slow ones end. Other addresses never wait for anything here.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final

from backend.errors import RateLimited

SLOW_AFTER: Final = 0.25  # seconds
MEMORY: Final = 30.0  # seconds
_RETRY_AFTER: Final = 5  # seconds
_MOST_REMEMBERED: Final = 10_000


class TooManySlowRequests(RateLimited):
    """The address has its share of slow requests running."""

    def __init__(self) -> None:
        super().__init__(
            "Too many slow requests at once from this address:"
            f" try again in {_RETRY_AFTER} seconds, with fewer at a time."
        )
        self.headers = {"Retry-After": str(_RETRY_AFTER)}


class Entry:
    """A registered statement. ``started`` is earlier by what its request has spent before."""

    __slots__ = ("address", "started")

    def __init__(self, address: str, started: float) -> None:
        self.address = address
        self.started = started


class SlowStatements:
    """The registered statements of one process. Safe to use from all threads.

    ``share``: slow statements of one address at a time; 0 is no limit.
    """

    def __init__(self, share: int, clock: Callable[[], float] = monotonic) -> None:
        self._share = share
        self._clock = clock
        self._lock = Lock()
        self._running: dict[str, list[Entry]] = {}
        self._held_until: dict[str, float] = {}

    def check(self, address: str) -> None:
        """Raise ``TooManySlowRequests`` if a statement of the address would be refused now."""
        if address in self._running:
            with self._lock:
                self._check(address, self._clock())

    def enter(self, address: str, spent: float = 0.0) -> Entry:
        """Register a statement of a request that has spent so many seconds in the database.

        Raises ``TooManySlowRequests``.
        """
        now = self._clock()
        entry = Entry(address, now - spent)
        with self._lock:
            self._check(address, now)
            self._running.setdefault(address, []).append(entry)
        return entry

    def leave(self, entry: Entry) -> None:
        """Remove a statement that has ended."""
        with self._lock:
            entries = self._running[entry.address]
            if self._share and len(entries) >= self._share:
                self._slow(entry.address, self._clock())
            entries.remove(entry)
            if not entries:
                del self._running[entry.address]

    def excess(self) -> list[Entry]:
        """The statements to stop: the latest of each address's slow ones, beyond its share."""
        if not self._share:
            return []
        with self._lock:
            now = self._clock()
            return [
                entry
                for address, entries in self._running.items()
                if len(entries) > self._share
                for entry in sorted(self._slow(address, now), key=lambda entry: entry.started)[
                    self._share :
                ]
            ]

    def _check(self, address: str, now: float) -> None:
        entries = self._running.get(address)
        if not self._share or entries is None or len(entries) < self._share:
            return
        is_full = len(self._slow(address, now)) >= self._share
        if is_full or self._held_until.get(address, 0.0) > now:
            raise TooManySlowRequests

    def _slow(self, address: str, now: float) -> list[Entry]:
        """The slow statements of an address; from its share on, the address is held to that."""
        slow = [entry for entry in self._running[address] if now - entry.started > SLOW_AFTER]
        if len(slow) >= self._share:
            if len(self._held_until) >= _MOST_REMEMBERED:
                self._held_until = {
                    other: moment for other, moment in self._held_until.items() if moment > now
                }
            self._held_until[address] = now + MEMORY
        return slow
