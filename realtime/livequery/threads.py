"""The threads in which live queries ask the database and run a deployment's code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

from django.db import close_old_connections, connections

_PATIENCE: Final = 5.0

T = TypeVar("T")


class Threads:
    """A few threads, each with its connection to the database, so that many clients who come at
    once wait for each other instead of taking all connections."""

    def __init__(self, count: int = 4) -> None:
        self._count = count
        self._pool = ThreadPoolExecutor(count, "livequery")

    async def do(self, work: Callable[[], T]) -> T:
        """Do this in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, _done, work)

    async def close(self) -> None:
        """Give up the connections; ``do`` makes new ones."""
        everybody = threading.Barrier(self._count)

        def closed() -> None:
            connections.close_all()
            # No thread does this twice, so each does it.
            with suppress(threading.BrokenBarrierError):
                everybody.wait(_PATIENCE)

        loop = asyncio.get_running_loop()
        await asyncio.wait([loop.run_in_executor(self._pool, closed) for _ in range(self._count)])


def _done(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()
