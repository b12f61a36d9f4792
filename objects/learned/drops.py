"""Dropping learned indexes: a transaction takes them away from queries, then they are dropped.

Outside of transactions they are dropped CONCURRENTLY, so that no write waits. What can't be dropped
at once (an old transaction, a process that ended) is dropped by ``schedule.tidy`` later.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

import psycopg
from django.db import connection
from django.db.models.functions import Now
from psycopg import sql

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger
from objects.core.indexes.shapes import is_part_of
from objects.core.names import ClassName, FieldName
from objects.core.schema.definition import IndexDeclaration
from objects.database import catalog, maintenance
from objects.database.catalog import PartitionIndex
from objects.database.orm import orm_queries
from objects.database.statements import fetch
from objects.database.time_limits import time_limits
from objects.definitions import registry
from objects.definitions.models import GENERIC_TABLE
from objects.learned import evidence
from objects.learned.evidence import Learned
from objects.learned.models import LearnedIndex
from objects.sql.tables import ClassTable

NAME: Final = r"^objects_auto_[0-9]+_[0-9a-f]{16}$"
"""What the names of learned indexes in the database look like."""
LOCK_LIMIT: Final = 10_000
"""Milliseconds for waiting for transactions that are older."""
_DROP_LIMIT: Final = 60_000

log = get_logger("learned_indexes")


def drop_from_database(name: str) -> bool:
    """Drop an index that queries no longer use, and return whether it is gone.

    Outside of a transaction it blocks no other session.
    """
    concurrently = "" if connection.in_atomic_block else "CONCURRENTLY"
    with time_limits(statement=_DROP_LIMIT, lock=LOCK_LIMIT):
        try:
            fetch(f"DROP INDEX {concurrently} IF EXISTS {quoted(name)}", (), prepare=False)
        except (ServiceError, psycopg.Error) as error:
            if connection.in_atomic_block:
                raise
            log.warning("an index can't be dropped yet", index=name, reason=str(error))
            return False
    return True


def drop(class_name: ClassName, index: Learned, reason: str, retry_days: int | None = None) -> None:
    """Stop using an index, then drop it.

    With ``retry_days`` it isn't built again for so long, for this reason. Raises
    ``UnderMaintenance``.
    """
    with maintenance.writing():
        table = registry.lock(class_name)
        if table is not None:
            _release(table, [index], reason, retry_days)
    registry.forget(class_name)
    log.info("an index is dropped", class_name=class_name, index=index.name, reason=reason)
    drop_from_database(index.name)


def release_fields(table: ClassTable, fields: Collection[FieldName]) -> None:
    """Drop the learned indexes that have one of these fields, before the fields change.

    An index on a field's type would refuse values of another one. Call it while builds are
    ``stopped``. Raises ``UnderMaintenance``.
    """
    indexes = evidence.learned(table.class_id)
    _release_all(
        table.class_name,
        [index for index in indexes if any(name in fields for name, _ in index.fields)],
    )
    # Left by a process that was killed, on fields that no longer exist.
    names = {index.name for index in indexes}
    own = f"objects_auto_{table.class_id}_"
    for name, _ in leftovers():
        if name.startswith(own) and name not in names:
            _drop_at_any_rate(name)


def release_covered(table: ClassTable, declared: Collection[IndexDeclaration]) -> None:
    """Drop the learned indexes that declared ones make superfluous."""
    _release_all(
        table.class_name,
        [
            index
            for index in evidence.learned(table.class_id)
            if any(is_part_of(index.fields, other.fields) for other in declared)
        ],
    )


def _release_all(class_name: ClassName, indexes: list[Learned]) -> None:
    if not indexes:
        return
    with maintenance.writing():
        table = registry.lock(class_name)
        if table is not None:
            _release(table, indexes, "", None)
    registry.forget(class_name)
    for index in indexes:
        _drop_at_any_rate(index.name)


def _drop_at_any_rate(name: str) -> None:
    """As ``drop_from_database``, however long it takes. Raises what PostgreSQL refuses it for."""
    concurrently = "" if connection.in_atomic_block else "CONCURRENTLY"
    with time_limits(statement=0, lock=0):
        fetch(f"DROP INDEX {concurrently} IF EXISTS {quoted(name)}", (), prepare=False)


def _release(
    table: ClassTable, indexes: list[Learned], reason: str, retry_days: int | None
) -> None:
    """Take indexes from the locked class, with a new version."""
    rows = LearnedIndex.objects.filter(pk__in=[index.id for index in indexes])
    with orm_queries():
        if retry_days is None:
            rows.delete()
        else:
            retry_at = Now() + timedelta(days=retry_days)
            rows.update(state=LearnedIndex.FAILED, reason=reason, retry_at=retry_at)
    if any(index.state == "valid" for index in indexes):
        names = {name for index in indexes for name, _ in index.fields}
        evidence.restart(table.class_id, names, registry.renew_locked(table))


def leftovers() -> list[PartitionIndex]:
    """Return the learned indexes that the database has, with whether each can be used."""
    return catalog.partition_indexes(GENERIC_TABLE, NAME)


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    return sql.Identifier(name).as_string(None)
