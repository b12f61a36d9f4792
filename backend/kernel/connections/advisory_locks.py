"""Advisory locks of PostgreSQL: every lock that the service takes, and the statements for it.

A lock is a number, a pair of numbers, or the hash of a text; the numbers are arbitrary and have to
differ from each other. Session locks end with the connection at the latest, so a process that dies
frees its locks; transaction locks end with the transaction.

The functions run their statements with a callable, since locks belong to different connections:
``objects.database.locks`` has them for the connection of the object store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

Run = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
"""Runs a statement with ``%s`` placeholders and returns its rows."""


@dataclass(frozen=True, slots=True)
class AdvisoryLock:
    """The key of a lock, as the arguments of PostgreSQL's functions and their parameters."""

    arguments: str
    parameters: tuple[Any, ...]


def _number(key: int) -> AdvisoryLock:
    return AdvisoryLock("%s", (key,))


def _pair(key: int, of: int) -> AdvisoryLock:
    # The second number has 31 bits: rows that share one only wait for each other.
    return AdvisoryLock("%s, %s", (key, of % 2**31))


def _text(key: str) -> AdvisoryLock:
    return AdvisoryLock("hashtextextended(%s, 0)", (key,))


def _of_network(key: str, network_id: int) -> AdvisoryLock:
    return AdvisoryLock(f"hashtextextended('{key}', %s)", (network_id,))


# -- One process at a time ------------------------------------------------------------------------

PREPARATION: Final = _number(7_316_504_801)
"""Migrations and the first staff user: ``prepare`` on several machines, and ``restore``."""

BACKUPS: Final = _number(7_316_504_814)
"""The one process that makes a backup and removes old ones."""

JOB_SCHEDULES: Final = _number(7_316_504_802)
"""The rows of schedules of registered jobs, while a process brings them up to date."""

SCHEDULE: Final = _number(7_316_504_811)
"""The one process that keeps the schedule (Celery beat)."""

INDEX_UPKEEP: Final = _number(7_316_504_813)
"""The one process that decides about learned indexes."""

WAL_ARCHIVE: Final = _number(7_316_504_815)
"""The one process that stores the embedded server's WAL."""


def chain_head(network_id: int) -> AdvisoryLock:
    """Indexing of new blocks of a network. It saves work; correctness doesn't depend on it."""
    return _of_network("chain.follow", network_id)


def chain_checks(network_id: int) -> AdvisoryLock:
    """The check of a network's monitored transactions. It saves requests to nodes."""
    return _of_network("chain.check_due", network_id)


def chain_backfill(row_id: int) -> AdvisoryLock:
    """A range of blocks that is being backfilled. Correctness doesn't depend on it."""
    return _pair(7_316_506, row_id)


# -- Objects, classes and requests ----------------------------------------------------------------

OUTSIDE_STORAGE: Final = _pair(7_316_504, 119)
"""Writes to other places than the database, shared by all of them: ``maintenance`` waits for
those that hold it, and nothing takes it exclusively."""


def index_build(class_id: int) -> AdvisoryLock:
    """The indexes of a class, and its table where a change locks that: one session at a time."""
    return _pair(7_316_505, class_id)


def class_name(name: str) -> AdvisoryLock:
    """Changes of a class, and of what is attached to it; also keeps a class from being created.
    Change capture finds the holders by the same hash (``objects.changes.interest``)."""
    return _text(f"class:{name}")


def unique_value(class_name: str, field: str, value: str) -> AdvisoryLock:
    """Registrations of one device or one transaction: a value that no two objects may have."""
    return _text(f"{class_name}.{field}={value}")


def push_sender(push_id: str, service: str, number: int) -> AdvisoryLock:
    """One of the tasks that send a push to a service at the same time. Correctness doesn't depend
    on it."""
    return _text(f"push:{push_id}:{service}:{number}")


def push_status(push_id: str) -> AdvisoryLock:
    """Writing the status of a push from its row."""
    return _text(f"push:{push_id}:status")


def request(key: str) -> AdvisoryLock:
    """Requests of one caller with the same ``X-Svc-Request-Id``. ``key`` is their hash."""
    return _text(key)


# -- Taking and releasing -------------------------------------------------------------------------


def lock_session(run: Run, lock: AdvisoryLock) -> None:
    """Wait for a lock of the session."""
    run(f"SELECT pg_advisory_lock({lock.arguments})", lock.parameters)


def lock_session_shared(run: Run, lock: AdvisoryLock) -> None:
    """Wait for a lock of the session that others may share."""
    run(f"SELECT pg_advisory_lock_shared({lock.arguments})", lock.parameters)


def try_lock_session(run: Run, lock: AdvisoryLock) -> bool:
    """Take a lock of the session if it is free; return whether it was."""
    return _is_true(run(f"SELECT pg_try_advisory_lock({lock.arguments})", lock.parameters))


def unlock_session(run: Run, lock: AdvisoryLock, *, shared: bool = False) -> None:
    """Release a lock of the session."""
    suffix = "_shared" if shared else ""
    run(f"SELECT pg_advisory_unlock{suffix}({lock.arguments})", lock.parameters)


def lock_transaction(run: Run, lock: AdvisoryLock) -> None:
    """Wait for a lock, and hold it until the transaction ends."""
    run(f"SELECT pg_advisory_xact_lock({lock.arguments})", lock.parameters)


def try_lock_transaction(run: Run, lock: AdvisoryLock) -> bool:
    """Take a lock until the transaction ends, if no other session has it; whether it is taken."""
    return _is_true(run(f"SELECT pg_try_advisory_xact_lock({lock.arguments})", lock.parameters))


@contextmanager
def try_session(run: Run, lock: AdvisoryLock) -> Iterator[bool]:
    """Hold a lock of the session while the block runs, if it is free; whether it was."""
    is_held = try_lock_session(run, lock)
    try:
        yield is_held
    finally:
        if is_held:
            unlock_session(run, lock)


def _is_true(rows: Sequence[Sequence[Any]]) -> bool:
    # Text over the object store's connection, a boolean over psycopg's cursors.
    return bool(rows) and rows[0][0] in (True, "t")
