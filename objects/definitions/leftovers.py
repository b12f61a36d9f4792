"""What is left of classes: tables of those that were removed, indexes that none declares.

Dropping them takes locks that others may be in the way of for long, such as a backup. They are
dropped at once if that is possible, and otherwise by the next run of the upkeep of indexes.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby

from django.db import connection

from backend.logs.setup import get_logger
from objects.core.names import ClassName, Subject
from objects.database import catalog
from objects.database.orm import orm_queries
from objects.definitions import class_locks, class_rows, indexes, registry
from objects.definitions.class_locks import ClassInUse
from objects.definitions.models import ObjectClass
from objects.sql.tables import ClassTable

_PATIENCE = 1.0  # seconds

log = get_logger("classes")


def table_of(class_id: int) -> ClassTable | None:
    """Return the class of this id, without reading all classes: there may be thousands."""
    with orm_queries():
        name = ObjectClass.objects.filter(pk=class_id).values_list("name", flat=True).first()
    return registry.find(ClassName(Subject(name))) if name is not None else None


def drop_tables() -> None:
    """Drop the tables of removed classes that nobody is using."""
    if connection.in_atomic_block:
        return  # the removal may be rolled back
    for relation in class_rows.removed_partitions():
        drop = partial(class_rows.drop_partition, relation)
        try:
            class_locks.in_moments(drop, patience=_PATIENCE)
        except ClassInUse as error:
            log.info("the table of a removed class is dropped later", reason=error.message)


def drop_indexes() -> None:
    """Drop indexes that no class declares, of processes that were killed while they built them."""
    names = catalog.indexes_of_classes(indexes.NAMES)
    for class_id, _ in groupby(names, lambda index: index.class_id):
        table = table_of(class_id)
        if table is None or not indexes.undeclared(table):
            continue
        try:
            drop_undeclared(table.class_name, patience=0)
        except ClassInUse as error:
            # One that is being built has no declaration yet.
            log.debug("indexes are dropped later", table=table.class_name, reason=error.message)


def drop_undeclared(class_name: ClassName, *, patience: float | None = None) -> list[str]:
    """Drop the indexes of a class that it doesn't declare; return their names.

    Raises ``ClassInUse``, also while one is being built, and ``UnderMaintenance``.
    """

    def drop(table: ClassTable | None) -> list[str]:
        return indexes.drop_undeclared(table) if table is not None else []

    return class_locks.alter(class_name, drop, patience=patience)
