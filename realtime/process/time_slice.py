"""Turns of the event loop for tasks that take long."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final

_SLICE: Final = 0.01
"""Seconds for which a task runs before other tasks of the event loop do."""


class TimeSlice:
    """The time for which a task may hold the event loop before it yields."""

    def __init__(self) -> None:
        self._began = monotonic()

    @property
    def is_over(self) -> bool:
        return monotonic() - self._began > _SLICE

    async def renew(self) -> None:
        """Yield to other tasks, then start another time slice."""
        await asyncio.sleep(0)
        self._began = monotonic()
