"""Pausing Python's search for garbage."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_paused = 0


@contextmanager
def no_collection() -> Iterator[None]:
    """Don't search for garbage while a large document is decoded.

    Decoding allocates many containers and frees none, so every search that it would start visits
    all of them for nothing. Concerns the whole process; may be used by several threads at once.
    """
    global _paused
    with _lock:
        _paused += 1
        if _paused == 1:
            gc.disable()
    try:
        yield
    finally:
        with _lock:
            _paused -= 1
            if _paused == 0:
                gc.enable()
