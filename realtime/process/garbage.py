"""Garbage collection of a realtime process.

A full collection blocks the event loop for some 50 microseconds for each open connection, and
100 ms for the loaded modules. By default Python runs one every few seconds while events are sent,
and frees nothing: only closed connections leave garbage. So loaded modules are excluded, and a full
collection runs after many connections have closed.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sized
from typing import Final, Protocol

from backend.kernel.process.frozen_heap import leave_out_loaded

# The thresholds of ``gc.set_threshold`` for the first two generations: their collections take a few
# milliseconds at most.
_YOUNG: Final = 2_000
_MIDDLE: Final = 20
_NEVER: Final = 1_000_000
_ENDED: Final = 1_000
"""Closed connections (some 20 MB) before a full collection; at least a quarter of the open ones, so
that the cost for each closed connection stays small."""
_MIDDLE_COLLECTIONS: Final = 50
"""Collections of the middle generation before a full one: two million new objects."""
_INTERVAL: Final = 5.0  # seconds


class Connections(Protocol):
    """The open connections, and the number of closed ones."""

    ended: int

    @property
    def sockets(self) -> Sized: ...


async def collect_rarely(connections: Connections, interval: float = _INTERVAL) -> None:
    """Run full garbage collections only after many connections have closed, until cancelled.

    Changes the collector of the whole process.
    """
    leave_out_loaded()
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    collected_at = connections.ended
    while True:
        await asyncio.sleep(interval)
        enough = max(_ENDED, len(connections.sockets) // 4)
        if connections.ended - collected_at >= enough or gc.get_count()[2] >= _MIDDLE_COLLECTIONS:
            collected_at = connections.ended
            gc.collect()
