"""Who may build indexes when: advisory locks of PostgreSQL, and limits of time.

One process at a time looks after learned indexes (``only_run``). An index of a class is built under
a lock of the class (``building``); whoever changes the class's fields holds the same lock, shared,
after ending the build (``stopped``). Locks belong to the connection: they end with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from django.db import connection

from backend.kernel.errors import ServiceError, Timeout
from objects.database.statements import fetch
from objects.sql.tables import ClassTable

_STOP_LIMIT: Final = 15.0  # seconds
_POLL: Final = 0.05
_RUN: Final = 7_316_504_813
_BUILD: Final = 7_316_505
# Any numbers that nothing else locks.
# Only what takes long is ended: storing why there is no index goes on.
_CANCEL: Final = """
SELECT pg_cancel_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.mode = 'ExclusiveLock'
AND (l.classid, l.objid, l.objsubid) = (%s, %s, 2)
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND a.state = 'active' AND a.query ~ '^(CREATE|DROP) INDEX CONCURRENTLY|^ANALYZE'
"""


@contextmanager
def only_run() -> Iterator[bool]:
    """Hold the lock of the upkeep, which one process at a time has; whether it was free."""
    is_held = fetch("SELECT pg_try_advisory_lock(%s)", (_RUN,), prepare=False)[0][0] == "t"
    try:
        yield is_held
    finally:
        if is_held:
            _unlock("pg_advisory_unlock(%s)", _RUN)


@contextmanager
def building(class_id: int) -> Iterator[bool]:
    """Hold the lock for building an index of a class; whether nobody else has it."""
    key = _key(class_id)
    is_held = fetch("SELECT pg_try_advisory_lock(%s, %s)", key, prepare=False)[0][0] == "t"
    try:
        yield is_held
    finally:
        if is_held:
            _unlock("pg_advisory_unlock(%s, %s)", *key)


@contextmanager
def stopped(table: ClassTable) -> Iterator[None]:
    """Keep learned indexes of a class from being built while the block runs; in a transaction, to
    its end.

    A build under way is ended. Raises ``Timeout`` if that takes too long.
    """
    if not table.is_partition:
        yield
        return
    key = _key(table.class_id)
    end = time.monotonic() + _STOP_LIMIT
    # A lock of the connection couldn't be given back in a transaction that has failed.
    is_inside = connection.in_atomic_block
    lock = "pg_try_advisory_xact_lock_shared" if is_inside else "pg_try_advisory_lock_shared"
    while fetch(f"SELECT {lock}(%s, %s)", key, prepare=False)[0][0] != "t":
        if time.monotonic() >= end:
            raise Timeout("An index of the class is being built; try again.")
        fetch(_CANCEL, key, prepare=False)
        time.sleep(_POLL)
    try:
        yield
    finally:
        if not is_inside:
            _unlock("pg_advisory_unlock_shared(%s, %s)", *key)


def _key(class_id: int) -> tuple[int, int]:
    return _BUILD, class_id % 2**31


def _unlock(function: str, *key: int) -> None:
    try:
        fetch(f"SELECT {function}", key, prepare=False)
    except (ServiceError, psycopg.Error):
        # The lock ends with the connection, at the latest.
        if not connection.in_atomic_block:
            connection.close()


@contextmanager
def limits(statement: int, lock: int) -> Iterator[None]:
    """Limits of time in milliseconds for the statements of the block, outside of transactions."""
    if connection.in_atomic_block:
        yield
        return
    try:
        fetch("SELECT set_config('statement_timeout', %s, false)", (str(statement),), prepare=False)
        fetch("SELECT set_config('lock_timeout', %s, false)", (str(lock),), prepare=False)
        yield
    finally:
        try:
            fetch("RESET statement_timeout", (), prepare=False)
            fetch("RESET lock_timeout", (), prepare=False)
        except (ServiceError, psycopg.Error):
            connection.close()  # which ends the limits, too
