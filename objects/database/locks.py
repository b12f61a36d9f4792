"""Advisory locks on the connection of the object store.

``backend.kernel.connections.advisory_locks`` lists the locks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import transaction

from backend.kernel.connections import advisory_locks
from backend.kernel.connections.advisory_locks import AdvisoryLock
from backend.kernel.errors import ServiceError
from objects.database.statements import Row, fetch


def lock_transaction(lock: AdvisoryLock) -> None:
    """Wait for a lock, and hold it until the transaction ends. Raises what ``fetch`` raises."""
    advisory_locks.lock_transaction(_run, lock)


def try_lock_transaction(lock: AdvisoryLock) -> bool:
    """Take a lock until the transaction ends, if no other session has it; whether it is taken."""
    return advisory_locks.try_lock_transaction(_run, lock)


def try_lock(lock: AdvisoryLock) -> bool:
    """Take a lock of the session if it is free; return whether it was. ``unlock`` releases it."""
    return advisory_locks.try_lock_session(_run, lock)


@contextmanager
def held(lock: AdvisoryLock, *, shared: bool = False) -> Iterator[None]:
    """Wait for a lock of the session, and hold it while the block runs."""
    if shared:
        advisory_locks.lock_session_shared(_run, lock)
    else:
        advisory_locks.lock_session(_run, lock)
    try:
        yield
    finally:
        unlock(lock, shared=shared)


@contextmanager
def try_held(lock: AdvisoryLock) -> Iterator[bool]:
    """Hold a lock of the session while the block runs, if it is free; whether it was."""
    is_held = try_lock(lock)
    try:
        yield is_held
    finally:
        if is_held:
            unlock(lock)


def unlock(lock: AdvisoryLock, *, shared: bool = False) -> None:
    """Release a lock of the session; if that fails, close the connection, which releases it."""
    try:
        advisory_locks.unlock_session(_run, lock, shared=shared)
    except (ServiceError, psycopg.Error):
        connection = transaction.get_connection()
        if not connection.in_atomic_block:
            connection.close()


def _run(sql: str, parameters: Sequence[Any]) -> list[Row]:
    return fetch(sql, parameters, prepare=True)
