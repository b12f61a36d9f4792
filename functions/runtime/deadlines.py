"""Time limits for code that runs in a thread.

One thread of the process watches all deadlines. When one passes, it raises ``TimeIsUp`` in the
thread at the next Python instruction, and cancels the PostgreSQL statement that the thread waits
for. It repeats this every second until the code has ended, since the cancellation may reach
PostgreSQL just before the statement does. Other waits in C code (``time.sleep``, a
socket without a timeout) are stopped when they return.
"""

from __future__ import annotations

import ctypes
import heapq
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from math import inf
from time import monotonic
from typing import Any, Final

from backend.kernel.interruptions import Interruption

_AGAIN: Final = 1.0  # seconds
_IDLE: Final = 1.0  # seconds

_set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise an exception in another thread at its next Python instruction."""
    _set_exception(ctypes.c_ulong(thread), ctypes.py_object(error))


class _Withdrawn(BaseException):
    """Raised and caught by ``withdraw``."""


def withdraw() -> None:
    """Withdraw what ``raise_in`` sent to this thread and what wasn't raised yet.

    CPython resets its flag for exceptions of this kind only when one is raised. While the flag is
    set, every thread of the process takes the slow path of each function call, and Python 3.11
    never returns from a call under ``sys.setprofile``. So another exception takes the place of the
    withdrawn one, and is raised here.
    """
    try:
        raise_in(threading.get_ident(), _Withdrawn)
        while True:
            pass  # it is raised at the loop's first jump
    except _Withdrawn:
        return


class TimeIsUp(Interruption):
    """Not an ``Exception``: code that catches those is stopped too."""


class _Deadline:
    __slots__ = ("connection", "in_use", "is_over", "moment", "thread", "was_raised")

    def __init__(self, moment: float, connection: Any) -> None:
        self.moment = moment
        self.thread = threading.get_ident()
        self.connection = connection
        self.is_over = False
        self.was_raised = False
        # Held while the thread's statement is cancelled: not the one of a later request.
        self.in_use = threading.Lock()


class _Watch:
    """The watching thread and what it waits for.

    Waking the thread costs more than most calls take. So ``add`` wakes it only for a deadline
    before ``wakes_at``, the time at which it wakes anyway. Without a deadline left it looks again
    after ``_IDLE`` seconds, until none was added in between. ``wakes_at`` may be old while the
    thread runs: it looks at the deadlines again before it waits.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.waiting: list[tuple[float, int, _Deadline]] = []
        self.numbers = count()
        self.has_new = False
        self.wakes_at = inf
        self.thread: threading.Thread | None = None

    def add(self, deadline: _Deadline) -> None:
        with self.changed:
            if self.thread is None or not self.thread.is_alive():
                # Not before it is needed.
                self.thread = threading.Thread(target=self.run, name="deadlines", daemon=True)
                self.thread.start()
            self._drop_finished()
            heapq.heappush(self.waiting, (deadline.moment, next(self.numbers), deadline))
            self.has_new = True
            if deadline.moment < self.wakes_at:
                self.changed.notify()

    def run(self) -> None:
        while True:
            with self.changed:
                self._drop_finished()
                now = monotonic()
                if not self.waiting:
                    self._wait(_IDLE if self.has_new else None, now)
                    continue
                moment, _, deadline = self.waiting[0]
                if moment > now:
                    self._wait(moment - now, now)
                    continue
                heapq.heappop(self.waiting)
            self.enforce(deadline)

    def _drop_finished(self) -> None:
        while self.waiting and self.waiting[0][2].is_over:
            heapq.heappop(self.waiting)

    def _wait(self, seconds: float | None, now: float) -> None:
        self.has_new = False
        self.wakes_at = inf if seconds is None else now + seconds
        self.changed.wait(seconds)

    def enforce(self, deadline: _Deadline) -> None:
        with deadline.in_use:
            if deadline.is_over:
                return
            if not deadline.was_raised:
                deadline.was_raised = True
                raise_in(deadline.thread, TimeIsUp)
            if deadline.connection is None:
                return
            # Read now: the connection may have been opened or reopened since the code started.
            connection = deadline.connection.connection
            if connection is not None:
                # If it waits for the database, it goes on, and notices.
                with suppress(Exception):
                    connection.cancel_safe(timeout=2.0)
        deadline.moment = monotonic() + _AGAIN
        self.add(deadline)


_watch = _Watch()


def _forget() -> None:
    global _watch
    _watch = _Watch()


# Threads don't survive a fork, and the condition may be held or have waiters.
os.register_at_fork(after_in_child=_forget)


@contextmanager
def time_limit(seconds: float, connection: Any = None) -> Iterator[None]:
    """Raise ``TimeIsUp`` in this thread after so many seconds; 0 means never.

    ``connection`` is Django's, of this thread (``connections[alias]``), if it uses one. Limits of
    one thread can't be nested: a limit inside of another one has to be 0.
    """
    if seconds <= 0:
        yield
        return
    deadline = _Deadline(monotonic() + seconds, connection)
    try:
        _watch.add(deadline)
        yield
    finally:
        try:
            with deadline.in_use:
                deadline.is_over = True
                if deadline.was_raised:
                    # Not delivered yet, maybe: it mustn't hit what comes next.
                    withdraw()
        finally:
            # Also where it is raised just here: statements of later requests would be cancelled.
            deadline.is_over = True
