"""Waiting for something that happens in another process, which nothing announces."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(holds: Callable[[], object], seconds: float) -> None:
    """Return when it holds. Fails if it doesn't within so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{holds} didn't come true within {seconds:.0f} seconds"
        time.sleep(0.02)
