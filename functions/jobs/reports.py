"""Reports of a run in progress: heartbeats, messages and the outcome.

A separate thread with its own database connection writes them. So heartbeats continue while the job
computes, and a message is visible immediately, even inside a transaction of the job.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import monotonic, sleep
from types import TracebackType
from typing import Final, Self

from django.db import connection

from backend.kernel.interruptions import Interruption
from backend.logs.setup import get_logger
from functions.jobs import records
from functions.jobs.records import Run
from functions.runtime.deadlines import raise_in, withdraw

LEAST_PAUSE: Final = 1.0  # seconds between messages that are written
_ATTEMPTS: Final = 6
_FIRST_PAUSE: Final = 0.5

log = get_logger("jobs")


class RunLost(Interruption):
    """Raised when this worker has lost the run. Not an ``Exception``, so the job can't catch it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run."""

    status: str
    message: str | None = None
    error: str | None = None


class Report:
    """The report of a run, written while its context is open.

    Raises ``RunLost`` in the block when the run was given to another worker, or given up.
    """

    def __init__(self, run: Run, interval: float) -> None:
        self._run = run
        self._interval = interval
        self._changed = threading.Condition()
        self._message: str | None = None
        self._outcome: Outcome | None = None
        self._is_over = False
        self._is_lost = False
        self._job_thread = threading.get_ident()
        self._thread = threading.Thread(target=self._write, name="job report", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(None)
        self._thread.join()

    def say(self, text: str) -> None:
        """Schedule a message to be written; a later message replaces it until then."""
        with self._changed:
            self._message = text
            self._changed.notify()

    def conclude(self, outcome: Outcome) -> bool:
        """Write the outcome and stop the report; return whether this worker still held the run."""
        self._end(outcome)
        self._thread.join()
        return not self._is_lost

    def _end(self, outcome: Outcome | None) -> None:
        with self._changed:
            self._outcome = self._outcome or outcome
            self._is_over = True
            # Not delivered yet, maybe: it mustn't hit what comes next.
            withdraw()
            self._changed.notify()

    def _write(self) -> None:
        try:
            next_beat = monotonic() + self._interval
            next_message = 0.0
            while True:
                with self._changed:
                    due = min(next_beat, next_message) if self._message else next_beat
                    if not self._is_over and due > monotonic():
                        self._changed.wait(due - monotonic())
                    if self._is_over:
                        break
                    now = monotonic()
                    ready = self._message is not None and now >= next_message
                    message = self._message if ready else None
                    if message is None and now < next_beat:
                        continue
                    if ready:
                        self._message = None
                        next_message = now + LEAST_PAUSE
                    next_beat = now + self._interval
                self._beat(message)
            if self._outcome is not None:
                self._conclude(self._outcome)
        finally:
            connection.close()

    def _beat(self, message: str | None) -> None:
        try:
            is_held = records.beat(self._run, message)
        except Exception as error:
            # The next one tells whether the run was given up meanwhile.
            log.warning("heartbeat not written", job=self._run.job_name, error=str(error))
            with self._changed:
                self._message = self._message or message
            return
        if not is_held:
            with self._changed:
                self._is_lost = True
                if not self._is_over:
                    raise_in(self._job_thread, RunLost)

    def _conclude(self, outcome: Outcome) -> None:
        message = self._message if outcome.message is None else outcome.message
        for attempt in range(_ATTEMPTS):
            try:
                held = records.finish(self._run, outcome.status, message, outcome.error)
                self._is_lost = not held
                return
            except Exception as error:
                log.warning("end not written", job=self._run.job_name, error=str(error))
                sleep(_FIRST_PAUSE * 2**attempt)
        self._is_lost = True
