"""Limit the threads of a process that slow statements of one client address can hold.

``backend.kernel.limits.statements`` calls ``enter`` before a client's statement and ``leave`` after
it. A statement is slow once its request has spent ``SLOW_AFTER`` seconds in the database. While an
address has its share of slow statements running, ``enter`` refuses its next one. Several statements
may become slow at the same time: ``excess`` returns those beyond the share, which have to be
stopped.

An address that has reached its share is held to it for ``HOLD_TIME`` seconds, fast statements
included. Otherwise it could take every thread again each time its slow statements end.

Only the time in which PostgreSQL answers counts (``AnswerClock``). Otherwise a server that stands
still for a moment (a failover, a checkpoint, a busy disk) would have every busy address refused.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final

from backend.kernel.errors import RateLimited

SLOW_AFTER: Final = 0.25  # seconds
HOLD_TIME: Final = 30.0  # seconds
_LONGEST_GAP: Final = 0.1  # seconds
_RETRY_AFTER: Final = 5  # seconds
_MAX_HELD: Final = 10_000


class TooManySlowRequests(RateLimited):
    """The address has its share of slow requests running."""

    def __init__(self) -> None:
        super().__init__(
            "Too many slow requests at once from this address:"
            f" try again in {_RETRY_AFTER} seconds, with fewer at a time."
        )
        self.headers = {"Retry-After": str(_RETRY_AFTER)}


class AnswerClock:
    """Seconds in which PostgreSQL answered this process.

    Of the time between two statements that end, ``_LONGEST_GAP`` counts at most. So it runs slower
    where there are few statements: an address that is alone disturbs no other.
    """

    __slots__ = ("_clock", "_state")

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        # In one tuple, which threads replace at once. Of two that do, one may be lost.
        self._state = (0.0, clock())

    def __call__(self) -> float:
        seconds, last = self._state
        return seconds + min(self._clock() - last, _LONGEST_GAP)

    def note_answer(self) -> None:
        """A statement has ended."""
        now = self._clock()
        seconds, last = self._state
        self._state = (seconds + min(now - last, _LONGEST_GAP), now)


class Entry:
    """A registered statement. ``started`` is a time of the answer clock, set back by the time its
    request spent before."""

    __slots__ = ("address", "started")

    def __init__(self, address: str, started: float) -> None:
        self.address = address
        self.started = started


class SlowStatements:
    """The registered statements of one process. Thread-safe.

    ``share``: slow statements of one address at a time; 0 is no limit. ``clock`` measures holds,
    ``answer_clock`` statements.
    """

    def __init__(
        self,
        share: int,
        clock: Callable[[], float] = monotonic,
        answer_clock: Callable[[], float] = monotonic,
    ) -> None:
        self._share = share
        self._clock = clock
        self._answer_clock = answer_clock
        self._lock = Lock()
        self._running: dict[str, list[Entry]] = {}
        self._held_until: dict[str, float] = {}

    def check(self, address: str) -> None:
        """Raise ``TooManySlowRequests`` if a statement of the address would be refused now."""
        if address in self._running:
            with self._lock:
                self._check(address)

    def enter(self, address: str, spent: float = 0.0) -> Entry:
        """Register a statement of a request that has spent ``spent`` seconds in the database.

        Raises ``TooManySlowRequests``.
        """
        entry = Entry(address, self._answer_clock() - spent)
        with self._lock:
            self._check(address)
            self._running.setdefault(address, []).append(entry)
        return entry

    def leave(self, entry: Entry) -> None:
        """Remove a statement that has ended."""
        with self._lock:
            entries = self._running[entry.address]
            if self._share and len(entries) >= self._share:
                self._update_hold(entry.address)
            entries.remove(entry)
            if not entries:
                del self._running[entry.address]

    def excess(self) -> list[Entry]:
        """Return the statements to stop: the latest slow ones of each address beyond its share."""
        if not self._share:
            return []
        with self._lock:
            return [
                entry
                for address, entries in self._running.items()
                if len(entries) > self._share
                for entry in sorted(self._update_hold(address), key=lambda entry: entry.started)[
                    self._share :
                ]
            ]

    def _check(self, address: str) -> None:
        entries = self._running.get(address)
        if not self._share or entries is None or len(entries) < self._share:
            return
        is_full = len(self._update_hold(address)) >= self._share
        if is_full or self._held_until.get(address, 0.0) > self._clock():
            raise TooManySlowRequests

    def _update_hold(self, address: str) -> list[Entry]:
        """Return the slow statements of an address, and hold it if they reach its share."""
        now = self._answer_clock()
        slow = [entry for entry in self._running[address] if now - entry.started > SLOW_AFTER]
        if len(slow) >= self._share:
            # Moved to the end: the first one is the next to expire.
            self._held_until.pop(address, None)
            if len(self._held_until) >= _MAX_HELD:
                del self._held_until[next(iter(self._held_until))]
            self._held_until[address] = self._clock() + HOLD_TIME
        return slow
