"""Searches in large bodies that let other threads run.

A call of ``bytes.find`` or of a compiled pattern holds the GIL until it returns: over 20 MB that
delays every other request of the process by milliseconds.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Final

_WINDOW: Final = 256 * 1024
"""Bytes that are searched in one call."""


def occurrences(data: bytes | mmap.mmap, text: bytes, start: int = 0) -> Iterator[int]:
    """Yield the positions of a text in data, from ``start`` on, without overlaps."""
    size = len(data)
    while start < size:
        end = start + _WINDOW
        position = data.find(text, start, end + len(text) - 1)
        if position < 0:
            start = end
        else:
            yield position
            start = position + len(text)
