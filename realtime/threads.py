"""The threads in which sockets ask the database and run a deployment's code: the event loop never
waits for either."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

from django.db import close_old_connections, connections

_PATIENCE: Final = 5.0  # seconds

T = TypeVar("T")


class Threads:
    """A few threads, each with its connection to the database, so that many clients who come at
    once wait for each other instead of taking all connections. What is asked of one thread is done
    in its turn. They begin with the first question, also after they were closed."""

    def __init__(self, name: str, count: int = 4) -> None:
        self._name = name
        self._count = count
        self._pool: ThreadPoolExecutor | None = None

    async def do(self, work: Callable[[], T]) -> T:
        """Do this in one of the threads. Raises what it raises."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._count, self._name)
        return await asyncio.get_running_loop().run_in_executor(self._pool, _done, work)

    async def close(self) -> None:
        """End them and their connections, after what they are doing; not waiting long for that."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        everybody = threading.Barrier(self._count)

        def closed() -> None:
            connections.close_all()
            # No thread does this twice, so each does it.
            with suppress(threading.BrokenBarrierError):
                everybody.wait(_PATIENCE)

        ended = [asyncio.wrap_future(pool.submit(closed)) for _ in range(self._count)]
        pool.shutdown(wait=False)
        await asyncio.wait(ended, timeout=_PATIENCE)


def _done(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()
