"""Statements of the event channel, in threads of their own: the event loop never waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, connections

from backend.errors import ServiceError

T = TypeVar("T")

_LAST_READING = 5.0  # seconds

UNREADABLE = (ServiceError, DatabaseError, InterfaceError)
"""What a reading raises while the database can't be asked."""


class ReadingThread:
    """One thread with a database connection of its own: readings are done in their turn. It begins
    with the first reading, also after it was closed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: ThreadPoolExecutor | None = None

    async def read(self, ask: Callable[[], T]) -> T:
        """The answer of a plain function that reads. Raises ``UNREADABLE``."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, self._name)
        return await asyncio.get_running_loop().run_in_executor(self._thread, ask)

    async def close(self) -> None:
        """End it and its connection, after what it is doing."""
        thread, self._thread = self._thread, None
        if thread is not None:
            closed = thread.submit(connections.close_all)
            thread.shutdown(wait=False)
            await asyncio.wait([asyncio.wrap_future(closed)], timeout=_LAST_READING)
