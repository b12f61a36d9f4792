"""Locks for changes of a class: of its definition, of its indexes, of its table.

A request for a lock of a table waits for the readers or writers that are in the way, and all later
requests wait behind it. So it is made for a moment only, in a transaction that ends without the
lock, and again after a pause in which the others go on. A long transaction on a table (a backup, an
aggregation, a slow writer) then delays the change and nothing else.

The indexes of a class have an advisory lock: sessions that build or drop indexes of one table at
the same time would wait for each other in a circle. It is polled, because ``CREATE INDEX
CONCURRENTLY`` waits for the snapshots of all statements, and a statement that waits for the lock
would have one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from math import inf
from random import uniform
from typing import Final, Literal, TypeAlias, TypeVar

from django.conf import settings
from django.db import connection, transaction
from psycopg.errors import LockNotAvailable

from backend.kernel.connections.advisory_locks import AdvisoryLock, index_build
from backend.kernel.errors import ServiceError, ServiceUnavailable, Timeout, TransactionConflict
from objects.core.names import ClassName
from objects.database import catalog, locks, maintenance
from objects.database.catalog import TableLock
from objects.database.statements import fetch
from objects.definitions import registry
from objects.sql.tables import ClassTable

TableMode: TypeAlias = Literal["SHARE ROW EXCLUSIVE", "ACCESS EXCLUSIVE"]
"""Block writers, or readers and writers."""

_PATIENCE: Final = 10.0
"""Seconds for which a request tries to lock a class. A thread of the web server waits so long."""
_BUILD_PATIENCE: Final = 60.0  # seconds; indexes of one class are built one after another
_MOMENT: Final = 100  # milliseconds
# After ``deadlock_timeout``, a second, PostgreSQL ends an autovacuum that is in the way.
_END_OF_VACUUM: Final = 1_500
_PAUSES: Final = (0.1, 0.3)  # seconds; each request stops the others for a moment at most
_POLL: Final = 0.05

_T = TypeVar("_T")


class ClassInUse(ServiceUnavailable):
    """A class can't be locked. ``relation`` is the table that others use, if it is that."""

    def __init__(
        self, message: str, relation: str | None = None, mode: TableMode = "ACCESS EXCLUSIVE"
    ) -> None:
        super().__init__(message)
        self.relation = relation
        self.mode = mode


def alter(
    class_name: ClassName,
    action: Callable[[ClassTable | None], _T],
    *,
    patience: float | None = None,
) -> _T:
    """Run an action in a transaction that may write and has locked the class; return its result.

    The action gets the class as it is now, None if there is none. It locks the table with
    ``lock_table``; what it can't lock at once makes it begin again, in another transaction, for
    ``patience`` seconds: as long as requests may wait, in commands without limit. Inside of a
    transaction it runs once.

    Raises ``ClassInUse`` when patience has ended: nothing of the action is stored then. Raises
    ``UnderMaintenance``.
    """

    def attempt() -> _T:
        maintenance.check()
        try:
            return action(registry.lock(class_name))
        except BaseException:
            registry.forget(class_name)  # what the action may have made of it
            raise

    return in_moments(attempt, patience=patience)


def in_moments(action: Callable[[], _T], *, patience: float | None = None) -> _T:
    """Run an action in a transaction whose waits for locks are short; repeat it until it has them.

    For statements that lock tables. Inside of a transaction it runs once, with the limits of that.
    Raises ``ClassInUse``.
    """
    if connection.in_atomic_block:
        with transaction.atomic():
            return action()
    end = time.monotonic() + (_patience(_PATIENCE) if patience is None else patience)
    moment = _MOMENT
    is_waiting = False
    try:
        while True:
            try:
                with transaction.atomic():
                    limit = {"limit": str(moment)}
                    fetch("SELECT set_config('lock_timeout', %(limit)s, true)", limit, prepare=True)
                    return action()
            except (ClassInUse, Timeout, TransactionConflict) as error:
                if isinstance(error, Timeout) and not _is_lock_timeout(error):
                    raise
                refusal = error
            held = _held(refusal)
            is_waiting = is_waiting or _waiting_places().acquire(blocking=False)
            if not is_waiting or time.monotonic() >= end:
                raise _in_use(refusal, held) from refusal
            is_vacuum = bool(held) and all(lock.is_vacuum for lock in held)
            moment = _END_OF_VACUUM if is_vacuum else _MOMENT
            time.sleep(uniform(*_PAUSES))
    finally:
        if is_waiting:
            _waiting_places().release()


def _patience(of_requests: float) -> float:
    return inf if settings.PROCESS == "manage" else of_requests


@cache
def _waiting_places() -> threading.BoundedSemaphore:
    """So many threads of a process may wait for classes: the others serve requests."""
    return threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 2))


def _is_lock_timeout(error: Timeout) -> bool:
    return isinstance(error.__cause__, LockNotAvailable)


def _held(refusal: ServiceError) -> list[TableLock]:
    if not isinstance(refusal, ClassInUse) or refusal.relation is None:
        return []
    return catalog.locks_of_table(refusal.relation, with_readers=refusal.mode == "ACCESS EXCLUSIVE")


def _in_use(refusal: ServiceError, held: list[TableLock]) -> ClassInUse:
    text = refusal.message if isinstance(refusal, ClassInUse) else "The class is being changed"
    if held:
        oldest = held[0]
        text += f" by pid {oldest.pid} ({oldest.process or 'unknown'}, for {oldest.seconds:.0f} s)"
    return ClassInUse(f"{text}. Try again.")


def lock_table(table: ClassTable, mode: TableMode) -> None:
    """Lock the table of a class and its indexes until the transaction ends, in ``alter``'s action.

    A learned index that is being built is given up; a declared one is waited for.
    """
    lock_indexes(table)
    try:
        fetch(f"LOCK TABLE {table.storage} IN {mode} MODE", {}, prepare=False)
    except Timeout as error:
        if not _is_lock_timeout(error):
            raise
        text = f"The class {table.class_name} is in use"
        raise ClassInUse(text, table.storage, mode) from error


def lock_indexes(table: ClassTable) -> None:
    """Keep others from building or dropping indexes of a class until the transaction ends."""
    lock = index_build(table.class_id)
    if not locks.try_lock_transaction(lock):
        catalog.cancel_learned_builds(lock)
        raise ClassInUse(f"An index of the class {table.class_name} is being built or dropped")


@contextmanager
def building(table: ClassTable) -> Iterator[None]:
    """Wait until no other session builds or drops indexes of a class, and keep it so.

    A learned index that is being built is given up. Raises ``ClassInUse``.
    """
    lock = index_build(table.class_id)
    if connection.in_atomic_block:
        lock_indexes(table)
        yield
        return
    _wait_for(lock, table)
    try:
        yield
    finally:
        locks.unlock(lock)


def _wait_for(lock: AdvisoryLock, table: ClassTable) -> None:
    if locks.try_lock(lock):
        return
    end = time.monotonic() + _patience(_BUILD_PATIENCE)
    if not _waiting_places().acquire(blocking=False):
        raise ClassInUse("Too many requests wait for classes that are being changed. Try again.")
    try:
        while time.monotonic() < end:
            catalog.cancel_learned_builds(lock)
            time.sleep(_POLL)
            if locks.try_lock(lock):
                return
    finally:
        _waiting_places().release()
    raise ClassInUse(f"Another index of the class {table.class_name} is being built. Try again.")


@contextmanager
def building_if_free(class_id: int) -> Iterator[bool]:
    """As ``building``, without waiting; yield whether the indexes of the class are locked."""
    with locks.try_held(index_build(class_id)) as is_held:
        yield is_held
