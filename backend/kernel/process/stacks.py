"""What threads of this process are doing, by their stacks."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Final

_DEPTH: Final = 6
"""Innermost frames that are read: a client of an engine calls some of ``ssl`` or ``socket``."""


def is_called_by(thread: int, packages: Collection[str]) -> bool:
    """Whether a thread is in a call that one of these packages makes, such as one that waits."""
    frame = sys._current_frames().get(thread)
    for _ in range(_DEPTH):
        if frame is None:
            return False
        name = f"{frame.f_globals.get('__name__', '')}."
        if any(name.startswith(f"{package}.") for package in packages):
            return True
        frame = frame.f_back
    return False
