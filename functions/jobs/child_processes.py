"""The child processes that a run starts: they end with its time limit.

A job that waits for a child can't be interrupted from within Python. When the child ends, the wait
ends, and the job with it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psutil

from backend.kernel.process.children import end_descendants
from backend.logs.setup import get_logger

_PATIENCE: Final = 2.0  # seconds until a child that ignores SIGTERM is killed

log = get_logger("jobs")


class _Runs:
    """How many runs this process executes: several only in a pool of threads."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    @contextmanager
    def counted(self) -> Iterator[None]:
        with self._lock:
            self.count += 1
        try:
            yield
        finally:
            with self._lock:
                self.count -= 1


_runs = _Runs()


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """End the descendants that this process gets within the block after so many seconds; 0 is
    never.

    Where the process executes other runs at that moment, their children can't be told from those of
    this run, and all are left.
    """
    with _runs.counted():
        if not seconds:
            yield
            return
        timer = threading.Timer(seconds, _end, ({child.pid for child in _descendants()},))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            # What it ends mustn't be what comes next.
            timer.join()


def _end(former: set[int]) -> None:
    started = [child for child in _descendants() if child.pid not in former]
    if not started:
        return
    if _runs.count > 1:
        log.warning("child processes of a job are left: other jobs run", count=len(started))
        return
    log.warning("child processes are ended with the time limit of their job", count=len(started))
    end_descendants(spare=former, patience=_PATIENCE)


def _descendants() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)
