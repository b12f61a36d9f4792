"""Who decides about learned indexes: one process at a time, under an advisory lock.

``objects.definitions.class_locks`` has the lock of the indexes of a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from backend.kernel.connections.advisory_locks import INDEX_UPKEEP
from objects.database import locks


@contextmanager
def only_run() -> Iterator[bool]:
    """Hold the lock of the upkeep, which one process at a time has; yield whether it was free."""
    with locks.try_held(INDEX_UPKEEP) as is_held:
        yield is_held
