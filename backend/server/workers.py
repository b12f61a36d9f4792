"""The server's processes, forked from one that has loaded the application.

Forks share the loaded memory copy-on-write. A process that dies is replaced; the pause before that
grows while replacements die within ``_YOUNG`` seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Final

from backend.embedded.children import die_with_parent
from backend.logs import get_logger

_PAUSES: Final = (0.0, 0.2, 1.0, 2.0, 5.0)
"""Seconds before a replacement, by the number of early deaths in a row."""
_YOUNG: Final = 10.0
"""Seconds: an earlier death counts as early."""
_STOP_TIME: Final = 15.0
"""Seconds from SIGTERM to SIGKILL."""

log = get_logger("server")


class Workers:
    """``count`` processes that run ``work``."""

    def __init__(self, count: int, work: Callable[[], None]) -> None:
        self._count = count
        self._work = work
        self._context = multiprocessing.get_context("fork")
        self._started: dict[BaseProcess, float] = {}
        self._deaths = 0
        self._is_stopping = False

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, and until every process has ended."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        for _ in range(self._count):
            self._start()
        while self._started:
            wait([process.sentinel for process in self._started])
            for process in [*self._started]:
                if process.exitcode is not None:
                    self._ended(process)

    def _start(self) -> None:
        if self._is_stopping:
            return
        process = self._context.Process(target=self._run_work, args=(os.getpid(),))
        process.start()
        self._started[process] = time.monotonic()
        if self._is_stopping:  # the signal arrived between fork and registration
            process.terminate()

    def _run_work(self, parent: int) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        die_with_parent(signal.SIGTERM, parent)
        self._work()

    def _ended(self, process: BaseProcess) -> None:
        started = self._started.pop(process)
        if self._is_stopping:
            return
        log.error(
            "a server process ended and is replaced", pid=process.pid, status=process.exitcode
        )
        is_young = time.monotonic() - started < _YOUNG
        self._deaths = self._deaths + 1 if is_young else 0
        time.sleep(_PAUSES[min(self._deaths, len(_PAUSES) - 1)])
        self._start()

    def _stop(self, number: int, frame: object) -> None:
        if self._is_stopping:
            return
        self._is_stopping = True
        for process in [*self._started]:
            process.terminate()
        signal.signal(signal.SIGALRM, self._kill)
        signal.setitimer(signal.ITIMER_REAL, _STOP_TIME)

    def _kill(self, number: int, frame: object) -> None:
        for process in [*self._started]:
            process.kill()
