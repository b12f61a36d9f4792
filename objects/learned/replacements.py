"""Replacing the index of all fields where an earlier version of the service has made it.

The class stays readable and writable: the new index is built CONCURRENTLY, a transaction gives the
class a new version with which queries use it, and the former one is dropped. A process that is
killed in between leaves an index that isn't valid, or one too many; the next run goes on from
there. Until then, queries use the former index, and what one object puts into it isn't bounded.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

import psycopg

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger
from objects.database import catalog, maintenance
from objects.database.statements import fetch
from objects.database.time_limits import time_limits
from objects.definitions import class_rows, registry
from objects.definitions.class_locks import building_if_free
from objects.definitions.models import ObjectClass
from objects.learned.drops import drop_from_database
from objects.sql.tables import ClassTable

_FORMER: Final = "USING gin (data jsonb_path_ops)"
_TIME: Final = 10.0  # seconds
_LOCK_LIMIT: Final = 600_000
"""Milliseconds for waiting for transactions that are older, such as a backup's. The build starts
from scratch after it, so it isn't short."""

log = get_logger("indexes")


def outdated() -> list[ClassTable]:
    """Return the classes whose index of all fields is still, or also, that of an earlier version.

    A model of a deployment has indexes of its own, which stay.
    """
    relations = frozenset(catalog.tables_with_index(_FORMER))
    if not relations:
        return []
    return [
        table
        for table in registry.all_classes()
        if table.storage in relations and (table.is_partition or _is_own(table))
    ]


def _is_own(table: ClassTable) -> bool:
    """Whether the class's model is one of this app, whose tables have the app's indexes."""
    model = registry.model_of(table.class_name)
    return model is not None and model._meta.app_label == ObjectClass._meta.app_label


def run(seconds: float = _TIME) -> int:
    """Replace indexes, beginning with another one until the time is over; return how many are left.

    Never inside a transaction. What can't be replaced now is logged.
    """
    end = monotonic() + seconds
    tables = outdated()
    left = len(tables)
    for table in tables:
        if monotonic() >= end:
            break
        try:
            left -= replace(table)
        except (ServiceError, psycopg.Error) as error:
            # An old transaction, a change of the class: the next run does it.
            log.warning(
                "an index isn't replaced yet", class_name=table.class_name, reason=str(error)
            )
    return left


def replace(table: ClassTable) -> bool:
    """Replace the index of all fields of a class; return whether the former one is gone.

    Raises ``ServiceError``, or psycopg's error if PostgreSQL can't build it now.
    """
    with building_if_free(table.class_id) as is_held:
        if not is_held:
            return False
        name = class_rows.index_of_all(table.storage)
        if table.indexed != class_rows.INDEXED[-1]:
            maintenance.check()
            _build(table, name)
            with maintenance.writing():
                current = registry.lock(table.class_name)
                if current is None or current.class_id != table.class_id:
                    return False
                registry.use_index_of_all(current)
            registry.forget(table.class_name)
        former = catalog.index_names_of(table.storage, _FORMER)
        return all(drop_from_database(table, other) for other in former)


def _build(table: ClassTable, name: str) -> None:
    with time_limits(statement=0, lock=_LOCK_LIMIT):
        states = catalog.index_states([name[1:-1]])
        if any(not state.is_valid for state in states.values()):
            fetch(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", (), prepare=False)
        fetch(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table.storage}"
            f" {class_rows.INDEX_OF_ALL}",
            (),
            prepare=False,
        )
        # PostgreSQL estimates by statistics of the new expression.
        fetch(f"ANALYZE {table.storage}", (), prepare=False)
