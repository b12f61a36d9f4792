"""Several callers at once, each with a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_PATIENCE = 30  # seconds


def at_once(actions: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run the actions, all of them begun at the same moment; their results in order."""
    from django.db import connections

    barrier = threading.Barrier(len(actions))

    def run(action: Callable[[], _T]) -> _T:
        try:
            barrier.wait(_PATIENCE)
            return action()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result(60) for future in [pool.submit(run, a) for a in actions]]


def wait_until_somebody_waits_for_us() -> None:
    """Until another connection waits for a lock that this thread's connection holds.

    Other workers of the run have their databases on the same server, and tests in which somebody
    waits.
    """
    from django.db import connection

    with connection.cursor() as cursor:
        for _ in range(_PATIENCE * 100):
            cursor.execute(
                "SELECT FROM pg_locks"
                " WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
            )
            if cursor.fetchone() is not None:
                return
            cursor.execute("SELECT pg_sleep(0.01)")
    raise AssertionError("Nobody waits.")
