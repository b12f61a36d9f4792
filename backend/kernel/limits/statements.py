"""The time that statements with a client's rights may take in PostgreSQL.

The server's own ``STATEMENT_TIMEOUT`` holds for every statement of a connection. Statements that
run with the rights of a client (``objects.access.scope.Scope``) have a shorter limit,
``CLIENT_STATEMENT_TIMEOUT``, in whichever process and transaction they run. It is enforced from
here: setting it on the connection would take a round trip whenever master key and clients alternate
on it, and would come back with a rollback. One thread of the process watches the statements under
way, every ``_TICK`` seconds while there are any, and cancels those whose time is up.

Statements of an HTTP request are counted for the request as well
(``backend.kernel.request_context.Budget``): all
of them together may take ``REQUEST_FACTOR`` times the limit, and slow searches of one address only
hold a share of the threads (``backend.kernel.limits.slow_statements``). Writes don't count there:
a client that stores much in short statements isn't one that searches slowly. When the client has
gone, its statement is cancelled, and the request starts no other.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import lru_cache
from time import monotonic, sleep
from typing import Any, Final, Protocol

from backend.kernel.errors import ServiceError, Timeout
from backend.kernel.limits.slow_statements import (
    AnswerClock,
    Entry,
    SlowStatements,
    TooManySlowRequests,
)
from backend.kernel.request_context import Budget, current
from backend.settings.conf import service_settings

REQUEST_FACTOR: Final = 3
_TICK: Final = 0.05  # seconds
_IDLE_TICKS: Final = 20
_PATIENCE: Final = 2.0  # seconds, for the server to accept a cancellation


class Session(Protocol):
    """A connection, and its limited statement under way."""

    raw: Any
    limited: Limited | None


class Limited:
    """A statement under way."""

    __slots__ = (
        "_is_over",
        "_refusal",
        "_session",
        "budget",
        "deadline",
        "entry",
        "in_use",
        "started",
    )

    def __init__(
        self, session: Session, started: float, deadline: float, budget: Budget | None
    ) -> None:
        self._session = session
        self.started = started
        self.deadline = deadline
        self.budget = budget
        self.entry: Entry | None = None
        self._refusal: ServiceError | None = None
        self._is_over = False
        # Held while the statement is cancelled, so that a later one of the connection is not.
        self.in_use = threading.Lock()

    def cancel(self, refusal: ServiceError) -> None:
        """Have PostgreSQL stop the statement, unless it has ended."""
        with self.in_use:
            if not self._is_over:
                self._refusal = self._refusal or refusal
                with suppress(Exception):
                    self._session.raw.cancel_safe(timeout=_PATIENCE)

    def raise_refusal(self, error: Exception) -> None:
        """Raise the limit's own error if the statement was cancelled for one."""
        if self._refusal is not None:
            raise self._refusal from error

    @property
    def is_abandoned(self) -> bool:
        """Whether its connection has gone on without ``end``, as after ``TimeIsUp`` at the worst
        moment."""
        return self._session.limited is not self

    def finish(self) -> None:
        """Account for the statement, and never cancel it from now on."""
        with self.in_use:
            if self._is_over:
                return
            self._is_over = True
        if self.budget is not None:
            self.budget.spent += monotonic() - self.started
        if self.entry is not None:
            slow_statements().leave(self.entry)


def too_long() -> Timeout:
    """Return the error of a statement that was stopped at its time limit."""
    return Timeout("The request took too long and was stopped.")


def client_gone() -> Timeout:
    """Return the error of a statement whose client has gone."""
    return Timeout("The client has closed the connection, so the request was stopped.")


_answer_clock = AnswerClock()
note_answer = _answer_clock.note_answer
"""Call it when PostgreSQL has answered any statement."""


@lru_cache(maxsize=4)
def _slow_statements(share: int) -> SlowStatements:
    return SlowStatements(share, answer_clock=_answer_clock)


def slow_statements() -> SlowStatements:
    """The slow statements of this process, under the share that the settings give an address."""
    return _slow_statements(service_settings.CLIENT_SLOW_REQUESTS)


class _Watch:
    """The statements under way, and the thread that watches them."""

    def __init__(self) -> None:
        self.running: set[Limited] = set()
        self._changing = threading.Lock()
        self._is_watched = False

    def add(self, statement: Limited) -> None:
        self.running.add(statement)
        if not self._is_watched:
            with self._changing:
                if not self._is_watched:
                    self._is_watched = True
                    threading.Thread(target=self._run, name="statements", daemon=True).start()

    def _run(self) -> None:
        idle = 0
        while idle < _IDLE_TICKS:
            sleep(_TICK)
            idle = 0 if self.running else idle + 1
            self._enforce()
        with self._changing:
            self._is_watched = False
        if self.running:
            # Added after the last look and before the flag was taken back.
            self.add(next(iter(self.running.copy())))

    def _enforce(self) -> None:
        statements = self.running.copy()
        for statement in statements:
            if statement.is_abandoned:
                self.running.discard(statement)
                statement.finish()
        now = monotonic()
        for statement in statements:
            if now >= statement.deadline:
                # Again at every tick, since the cancellation may reach PostgreSQL before the
                # statement.
                statement.cancel(too_long())
            elif statement.budget is not None and statement.budget.client.is_closed:
                statement.cancel(client_gone())
        excess = set(map(id, slow_statements().excess()))
        for statement in statements:
            if id(statement.entry) in excess:
                statement.cancel(TooManySlowRequests())


_watch = _Watch()


def _forget() -> None:
    global _watch
    _watch = _Watch()
    _slow_statements.cache_clear()


# Threads don't survive a fork, and locks may have been held.
os.register_at_fork(after_in_child=_forget)


def begin(session: Session, *, is_read: bool) -> None:
    """Register a statement that is about to run on a connection; always call ``end`` afterwards.

    Raises ``Timeout`` if the request has used up its time or its client has gone, and
    ``TooManySlowRequests``.
    """
    seconds = service_settings.CLIENT_STATEMENT_TIMEOUT / 1000
    budget = current().budget
    if not seconds and budget is None:
        return
    if budget is not None and budget.client.is_closed:
        raise client_gone()
    now = monotonic()
    deadline = now + seconds if seconds else float("inf")
    if budget is not None and seconds:
        deadline = min(deadline, now + REQUEST_FACTOR * seconds - budget.spent)
        if deadline <= now:
            raise too_long()
    statement = session.limited = Limited(session, now, deadline, budget)
    if budget is not None and is_read:
        statement.entry = slow_statements().enter(budget.address, budget.spent)
    _watch.add(statement)


def end(session: Session) -> None:
    """Remove the connection's statement, however it ended."""
    statement, session.limited = session.limited, None
    if statement is not None:
        _watch.running.discard(statement)
        statement.finish()
