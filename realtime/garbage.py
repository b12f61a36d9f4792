"""When a realtime process looks for garbage.

A search of all objects holds the event loop for some 50 microseconds for each open connection, and
100 ms for the modules that are loaded: left to itself, Python makes one every few seconds while
events are told, and finds nothing. What is loaded is left out here, and all of the rest is searched
only after so many objects have come to stay that dead connections may be among them.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Final

from backend.loaded import leave_out_loaded

# New objects until the youngest are looked at, and how often they are until those are that were
# kept: searches of some milliseconds at the most.
_YOUNG: Final = 2_000
_MIDDLE: Final = 20
_NEVER: Final = 1_000_000
_ENOUGH: Final = 5
"""Searches of the middle ones, 200,000 objects, until all are searched."""
_LOOK: Final = 5.0  # seconds


async def search_seldom(look: float = _LOOK) -> None:
    """Search for garbage as a process with many connections should, until cancelled. For the
    process that serves them: all of its threads are concerned."""
    leave_out_loaded()
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    while True:
        await asyncio.sleep(look)
        if gc.get_count()[2] >= _ENOUGH:
            gc.collect()
