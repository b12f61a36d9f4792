"""Who may build indexes when: advisory locks of PostgreSQL.

One process at a time looks after learned indexes (``only_run``). An index of a class is built under
a lock of the class (``building``); changes of the class's fields hold the same lock, shared,
after ending the build (``stopped``). Locks belong to the connection: they end with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection

from backend.kernel.connections.advisory_locks import INDEX_UPKEEP, AdvisoryLock, index_build
from backend.kernel.errors import Timeout
from objects.database import catalog, locks
from objects.sql.tables import ClassTable

_STOP_LIMIT: Final = 15.0  # seconds
_POLL: Final = 0.05


@contextmanager
def only_run() -> Iterator[bool]:
    """Hold the lock of the upkeep, which one process at a time has; yield whether it was free."""
    with locks.try_held(INDEX_UPKEEP) as is_held:
        yield is_held


@contextmanager
def building(class_id: int) -> Iterator[bool]:
    """Hold the lock for building an index of a class; yield whether it was free."""
    with locks.try_held(index_build(class_id)) as is_held:
        yield is_held


@contextmanager
def stopped(table: ClassTable) -> Iterator[None]:
    """Prevent builds of learned indexes of a class during the block.

    In a transaction, until its end.

    A running build is cancelled. Raises ``Timeout`` if that takes too long.
    """
    if not table.is_partition:
        yield
        return
    lock = index_build(table.class_id)
    end = time.monotonic() + _STOP_LIMIT
    # A lock of the connection couldn't be given back in a transaction that has failed.
    is_inside = connection.in_atomic_block
    try_shared = locks.try_lock_transaction_shared if is_inside else _try_lock_shared
    while not try_shared(lock):
        if time.monotonic() >= end:
            raise Timeout("An index of the class is being built; try again.")
        # Storing why there is no index goes on.
        catalog.cancel_index_builds(lock)
        time.sleep(_POLL)
    try:
        yield
    finally:
        if not is_inside:
            locks.unlock(lock, shared=True)


def _try_lock_shared(lock: AdvisoryLock) -> bool:
    return locks.try_lock(lock, shared=True)
