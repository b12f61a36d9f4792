"""When a realtime process looks for garbage.

A search of all objects holds the event loop for some 50 microseconds for each open connection, and
100 ms for the modules that are loaded: left to itself, Python makes one every few seconds while
events are sent, and finds nothing. Garbage is what connections leave behind that have ended. So
what is loaded is left out here, and all of the rest is searched when many have.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sized
from typing import Final, Protocol

from backend.kernel.process.frozen_heap import leave_out_loaded

# New objects until the youngest are searched, and how often they are until those are that were
# kept: searches of some milliseconds at the most.
_YOUNG: Final = 2_000
_MIDDLE: Final = 20
_NEVER: Final = 1_000_000
_ENDED: Final = 1_000
"""Connections, some 20 MB, that have ended since all was searched; and a fourth of those that are
open, so that the searches cost little for each that ends."""
_KEPT: Final = 50
"""Searches of the middle ones: two million new objects of any kind are reason enough."""
_LOOK: Final = 5.0  # seconds


class Connections(Protocol):
    """Those that are open, and how many have ended."""

    ended: int

    @property
    def sockets(self) -> Sized: ...


async def search_seldom(connections: Connections, look: float = _LOOK) -> None:
    """Search for garbage as a process with many connections should, until cancelled. For the
    process that serves them: all of its threads are concerned."""
    leave_out_loaded()
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    searched_at = connections.ended
    while True:
        await asyncio.sleep(look)
        enough = max(_ENDED, len(connections.sockets) // 4)
        if connections.ended - searched_at >= enough or gc.get_count()[2] >= _KEPT:
            searched_at = connections.ended
            gc.collect()
