"""Dropping learned indexes: a transaction takes them away from queries, then they are dropped.

What can't be dropped at once (an old transaction, a process that ended) is dropped by
``schedule.tidy`` later.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from django.db.models.functions import Now

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger
from objects.core.indexes.shapes import is_part_of
from objects.core.names import ClassName, FieldName
from objects.core.schema.definition import IndexDeclaration
from objects.database import catalog, maintenance
from objects.database.catalog import ClassIndex
from objects.database.orm import orm_queries
from objects.definitions import class_locks, indexes, registry
from objects.learned import evidence
from objects.learned.evidence import Learned
from objects.learned.models import LearnedIndex
from objects.sql.tables import ClassTable

NAMES: Final = "^objects_auto_([0-9]+)_[0-9a-f]{16}$"
"""What names of learned indexes in the database look like, with the id of the class."""
_PATIENCE: Final = 1.0  # seconds

log = get_logger("learned_indexes")


def drop_from_database(table: ClassTable, name: str) -> bool:
    """Drop an index that queries no longer use, and return whether it is gone.

    Also in maintenance mode, for a build that began before. Raises nothing.
    """

    def drop(current: ClassTable | None) -> None:
        if current is not None and current.class_id == table.class_id:
            indexes.drop(current, [name])

    try:
        with maintenance.own_records():
            class_locks.alter(table.class_name, drop, patience=_PATIENCE)
    except ServiceError as error:
        log.warning("an index can't be dropped yet", index=name, reason=error.message)
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
    if table is not None:
        drop_from_database(table, index.name)


def release_fields(table: ClassTable, fields: Collection[FieldName]) -> list[str]:
    """Take the learned indexes that have one of these fields from a locked class.

    Returns the names to drop before the transaction ends: an index on a field's type would refuse
    values of another one.
    """
    learned = evidence.learned(table.class_id)
    released = [index for index in learned if any(name in fields for name, _ in index.fields)]
    if released:
        _release(table, released, "", None)
    remaining = {index.name for index in learned} - {index.name for index in released}
    present = catalog.index_names(table.storage, f"objects_auto_{table.class_id}_")
    # Also those that a killed process has left, maybe on fields that no longer exist.
    return [name for name in present if name not in remaining]


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


def _release_all(class_name: ClassName, covered: list[Learned]) -> None:
    if not covered:
        return
    with maintenance.writing():
        table = registry.lock(class_name)
        if table is not None:
            _release(table, covered, "", None)
    registry.forget(class_name)
    for index in covered:
        if table is not None:
            drop_from_database(table, index.name)


def _release(
    table: ClassTable, released: list[Learned], reason: str, retry_days: int | None
) -> None:
    """Take indexes from the locked class, with a new version."""
    rows = LearnedIndex.objects.filter(pk__in=[index.id for index in released])
    with orm_queries():
        if retry_days is None:
            rows.delete()
        else:
            retry_at = Now() + timedelta(days=retry_days)
            rows.update(state=LearnedIndex.FAILED, reason=reason, retry_at=retry_at)
    if any(index.state == "valid" for index in released):
        names = {name for index in released for name, _ in index.fields}
        evidence.restart(table.class_id, names, registry.renew_locked(table))


def in_database() -> list[ClassIndex]:
    """Return the learned indexes that the database has, built or not."""
    return catalog.indexes_of_classes(NAMES)
