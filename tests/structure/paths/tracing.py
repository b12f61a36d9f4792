"""Which of the project's functions a piece of code calls, in order, in all of its threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_APPS = ("backend", "objects", "functions", "chain", "realtime")


@contextmanager
def traced() -> Iterator[list[str]]:
    """Collect ``module.function`` of every call, in the order of the calls."""
    calls: list[str] = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            module = frame.f_globals.get("__name__", "")
            if module.partition(".")[0] in _APPS:
                calls.append(f"{module}.{frame.f_code.co_qualname}")

    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
