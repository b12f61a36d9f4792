"""Complete requests to threads, fairly between client addresses.

Threads take from the addresses in turn (``backend.kernel.limits.fair_queue``), so a client that
sends a
thousand requests delays another client by one request. Expensive requests can't take every thread:
an address has at most the basic number of threads at a time, and while one of its requests has been
running for ``SLOW`` seconds, other addresses get additional threads, which it can't use.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from time import monotonic
from typing import Any, Final, NamedTuple

from backend.kernel.errors import InternalError, ServiceError
from backend.kernel.limits.fair_queue import Turns
from backend.kernel.process import liveness
from backend.logs.setup import get_logger
from backend.server.limits import Limits
from backend.server.refusals import Overloaded, TooManyAtOnce
from backend.server.work import Job

SLOW: Final = 0.1  # seconds
_LOG_PAUSE: Final = 1.0  # seconds between lines that say that threads can't be started
_MAX_THREADS: Final = 4  # times the basic number

log = get_logger("server")


class Dispatcher:
    """The threads of one process. ``submit`` and ``tick`` are called in the event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        threads: int,
        end_thread: Callable[[], None] = lambda: None,
        name: str = "request",
        is_working: Callable[[int, float], bool] = lambda thread, seconds: False,
    ) -> None:
        """``is_working`` says of a thread (its number) that has been running a job for so many
        seconds whether the job may take so long; otherwise the thread counts as stuck."""
        self.base = threads
        self.most = threads * _MAX_THREADS
        self._loop = loop
        self._limits = limits
        self._end_thread = end_thread
        self._name = name
        self._numbers = count(1)
        self._start_failure_logged_at = 0.0
        self._is_working = is_working
        self._lock = threading.Lock()
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._queued: Turns[tuple[float, Job]] = Turns()
        self._running: dict[Job, _Run] = {}
        self._waiting_since = 0.0  # when a request was queued behind none, or one was taken
        self._held: Counter[str] = Counter()  # threads by address
        self._threads = 0
        self._idle = 0  # waiting threads that no wake-up was sent to
        self._done: deque[tuple[Job, Any]] = deque()
        self._is_flushing = False
        self._is_over = False
        for _ in range(threads):
            self._start_thread()

    @property
    def load(self) -> tuple[int, int, int]:
        """Waiting requests, running requests, and threads."""
        return len(self._queued), len(self._running), self._threads

    def submit(self, job: Job) -> None:
        """Queue a request, or refuse it if too many wait, of its address or in all."""
        now = monotonic()
        with self._lock:
            if len(self._queued) >= self._limits.waiting:
                refusal: ServiceError | None = Overloaded()
            elif self._queued.waiting_of(job.address) >= self._limits.waiting_per_address:
                refusal = TooManyAtOnce()
            else:
                refusal = None
                if not self._queued:
                    self._waiting_since = now
                self._queued.put(job.address, (now, job))
                self._wake_or_start_thread(now)
        if refusal is not None:
            job.fail(refusal)

    def tick(self) -> None:
        """Start a thread if slow requests hold all others, and refuse expired requests.

        A request expires after ``wait_time``, or when its client disconnects. Called every tick of
        the server.
        """
        now = monotonic()
        oldest = now - self._limits.wait_time
        with self._lock:
            if not self._queued:
                return
            expired = self._queued.remove(lambda entry: not _may_wait(entry, oldest))
            if self._queued:
                self._wake_or_start_thread(now)
        for _, job in expired:
            _call(job.fail, Overloaded())

    def is_stalled(self) -> bool:
        """Whether requests wait, no thread has taken one for ``stall_time``, and none works."""
        now = monotonic()
        with self._lock:
            return (
                len(self._queued) > 0
                and now - self._waiting_since >= self._limits.stall_time
                and not any(
                    self._is_working(run.thread, now - run.start) for run in self._running.values()
                )
            )

    def end(self) -> None:
        """End each thread once no request waits."""
        with self._lock:
            self._is_over = True
            for _ in range(self._threads):
                self._wake.put(None)

    # -- with the lock held ------------------------------------------------------------------

    def _wake_or_start_thread(self, now: float) -> None:
        if self._idle:
            self._idle -= 1
            self._wake.put(None)
        elif self._threads < self.base or self._needs_thread(now):
            self._try_to_start_thread(now)

    def _try_to_start_thread(self, now: float) -> None:
        try:
            self._start_thread()
        except RuntimeError as error:
            if now - self._start_failure_logged_at >= _LOG_PAUSE:
                self._start_failure_logged_at = now
                log.error("no thread can be started", exc_info=error)

    def _slow_addresses(self, now: float) -> set[str]:
        return {job.address for job, run in self._running.items() if now - run.start > SLOW}

    def _needs_thread(self, now: float) -> bool:
        if self._threads >= self.most:
            return False
        slow = self._slow_addresses(now)
        return bool(slow) and any(
            address not in slow and self._held[address] < self.base for address in self._queued
        )

    def _take(self) -> Job | None:
        if not self._queued:
            return None
        slow: set[str] = set()
        if len(self._running) >= self.base:
            slow = self._slow_addresses(monotonic())
        taken = self._queued.take(
            lambda address: address not in slow and self._held[address] < self.base
        )
        if taken is None:
            return None
        address, (_, job) = taken
        self._waiting_since = monotonic()
        self._running[job] = _Run(self._waiting_since, threading.get_ident())
        self._held[address] += 1
        if self._queued and self._idle:  # more requests than wake-ups may be eligible
            self._idle -= 1
            self._wake.put(None)
        return job

    def _ended(self, job: Job) -> None:
        self._running.pop(job, None)
        self._held[job.address] -= 1
        if not self._held[job.address]:
            del self._held[job.address]

    # -- threads -----------------------------------------------------------------------------

    def _start_thread(self) -> None:
        name = f"{self._name}-{next(self._numbers)}"
        threading.Thread(target=self._work, name=name, daemon=True).start()
        self._threads += 1

    def _work(self) -> None:
        job: Job | None = None
        try:
            while (job := self._next()) is not None:
                result = job.run()
                with self._lock:
                    self._ended(job)
                self._done.append((job, result))
                job = None
                if not self._is_flushing:
                    self._is_flushing = True
                    # Once the event loop is closed, the process is ending.
                    with suppress(RuntimeError):
                        self._loop.call_soon_threadsafe(self._flush)
                del result
        except BaseException as error:
            # A job doesn't raise, but its thread may be interrupted anywhere.
            name = threading.current_thread().name
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(partial(self._replace_thread, name, job, error))
        finally:
            self._end_thread()

    def _replace_thread(self, name: str, job: Job | None, error: BaseException) -> None:
        """Start another thread in the place of one that has ended, and refuse its job."""
        with self._lock:
            self._threads -= 1
            if job is not None and job in self._running:
                self._ended(job)
            if not self._is_over:
                self._try_to_start_thread(monotonic())
        liveness.count_ended_thread()
        log.error("a thread has ended and is replaced", thread=name, exc_info=error)
        if job is not None:
            _call(job.fail, InternalError("Internal server error."))
        self._flush()

    def _next(self) -> Job | None:
        """Wait for a request; None if this thread has to end."""
        while True:
            with self._lock:
                job = self._take()
                if job is not None:
                    return job
                if self._is_over:
                    self._threads -= 1
                    return None
                self._idle += 1
            while True:
                try:
                    self._wake.get(timeout=self._limits.idle_thread)
                    break
                except queue.Empty:
                    # With _idle at 0, each waiting thread has a wake-up coming: stay for it.
                    with self._lock:
                        if self._idle and self._threads > self.base:
                            self._idle -= 1
                            self._threads -= 1
                            return None

    def _flush(self) -> None:
        self._is_flushing = False
        while self._done:
            job, result = self._done.popleft()
            _call(job.finish, result)


class _Run(NamedTuple):
    """When a job was started, and in which thread."""

    start: float
    thread: int


def _call(function: Callable[[Any], None], value: object) -> None:
    """Call a job's method; an error concerns no other job."""
    try:
        function(value)
    except Exception as error:
        log.error("a response can't be sent", exc_info=error)


def _may_wait(entry: tuple[float, Job], oldest: float) -> bool:
    return entry[0] >= oldest and not entry[1].is_abandoned
