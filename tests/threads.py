"""Several callers at once, each with a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


def at_once(actions: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run the actions, all of them begun at the same moment; their results in order."""
    from django.db import connections

    barrier = threading.Barrier(len(actions))

    def run(action: Callable[[], _T]) -> _T:
        try:
            barrier.wait(30)
            return action()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result(60) for future in [pool.submit(run, a) for a in actions]]
