"""Objects into PostgreSQL: create and delete, and what all writes have in common.

As in ``store``, each statement checks that the class is still the one it was made for, and
satisfies the caller's conditions (the policy's) in the same statement that writes. In the same way
it checks that the system isn't read-only (``maintenance``); all of this raises
``UnderMaintenance`` then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.db import transaction
from psycopg.errors import DatabaseError

from backend.kernel.json_types import Json
from backend.kernel.limits import written
from objects.access.scope import Scope
from objects.core.access.acl import Acl
from objects.core.names import FieldName, ObjectId
from objects.core.query.tree import Query
from objects.core.update.operations import Times
from objects.core.update.operators import ChangeRelation
from objects.database import maintenance
from objects.database.parameters import as_text
from objects.database.statements import Row, fetch, fetch_values
from objects.sql.compiler import compile_query
from objects.sql.rows import (
    NOW,
    split,
    timestamp_text,
    wire_timestamp,
)
from objects.sql.tables import ClassTable
from objects.storage.conflicts import refusal
from objects.storage.reads import StaleClass


def guard() -> str:
    """Return the condition of a writing statement. Parameters: the class and its version."""
    return (
        "EXISTS (SELECT FROM objects_class g WHERE g.id = %s AND g.version = %s)"
        f" AND {maintenance.guard()}"
    )


def create(
    table: ClassTable,
    object_id: ObjectId,
    fields: Mapping[str, Json],
    acl: Acl,
    relations: Mapping[FieldName, ChangeRelation],
    *,
    times: Times | None = None,
    is_limited: bool = False,
    is_last: bool = False,
) -> str:
    """Store a new object and return its time: now, or the first of ``times``.

    ``is_limited`` and ``is_last`` as for ``statements.fetch``. Raises ``DuplicateValue`` or
    ``StaleClass``.
    """
    values = _values(table, object_id, fields, acl)
    moments = f"{NOW}, {NOW}"
    moment_params: tuple[str, ...] = ()
    if times is not None:
        moments, moment_params = "%s::timestamptz, %s::timestamptz", tuple(times)
    names = ", ".join(values)
    slots = ", ".join(_slot(name) for name in values)
    statement = (
        f"INSERT INTO {table.relation} (created_at, updated_at, {names})"
        f" SELECT {moments}, {slots} WHERE {guard()}"
        f" RETURNING {timestamp_text('created_at')}"
    )
    params = (*moment_params, *values.values(), table.class_id, table.version)
    if not relations:
        return _insert(table, statement, params, is_limited=is_limited, is_last=is_last)
    with transaction.atomic():
        created_at = _insert(table, statement, params, is_limited=is_limited)
        change_relations(table, object_id, relations, is_limited=is_limited)
    return created_at


def create_many(
    table: ClassTable,
    objects: Sequence[tuple[ObjectId, Mapping[str, Json], Acl]],
    *,
    is_limited: bool,
) -> str:
    """Store new objects (id, fields, access list) by one statement; their time.

    Raises ``DuplicateValue`` or ``StaleClass``; none is stored then.
    """
    rows_of_values = [_values(table, *new) for new in objects]
    columns = {
        name: [as_text(values[name]) for values in rows_of_values] for name in rows_of_values[0]
    }
    statement = f"{_insert_of(table, columns)} RETURNING {timestamp_text('created_at')}"
    params = (*columns.values(), table.class_id, table.version)
    return _insert(table, statement, params, is_limited=is_limited)


class NewRow(NamedTuple):
    """A new object of a generic class, ready to be stored: ``data`` is the JSON of its fields."""

    object_id: ObjectId
    acl: Acl
    data: str
    relations: Mapping[FieldName, ChangeRelation]


def create_rows(table: ClassTable, rows: Sequence[NewRow]) -> None:
    """Store thousands of new objects of a generic class by one statement.

    Call it in a transaction. Raises ``DuplicateValue``, ``ObjectTooLarge`` or ``StaleClass``; no
    row is stored then.
    """
    columns: dict[str, list[str | None]] = {
        "object_id": [row.object_id for row in rows],
        "data": [row.data for row in rows],
    }
    for name, ids in (
        ("read_acl", [row.acl.read_ids for row in rows]),
        ("write_acl", [row.acl.write_ids for row in rows]),
    ):
        if any(each is not None for each in ids):
            columns[name] = [as_text(each) for each in ids]
    _insert(
        table,
        f"WITH stored AS ({_insert_of(table, columns, 'class_id')}"
        f" RETURNING {timestamp_text('created_at')} AS time) SELECT time FROM stored LIMIT 1",
        (table.class_id, *columns.values(), table.class_id, table.version),
    )
    for row in rows:
        if row.relations:
            change_relations(table, row.object_id, row.relations)


def stored_ids(table: ClassTable, object_ids: Sequence[ObjectId]) -> set[str]:
    """Those of the ids that objects of the class have."""
    statement = f"SELECT object_id FROM {table.relation} WHERE object_id = ANY(%(ids)s::text[])"
    return set(fetch_values(str, statement, {"ids": list(object_ids)}, prepare=False))


def check_current(table: ClassTable) -> None:
    """Raise ``StaleClass`` or ``UnderMaintenance`` if the class couldn't be written now."""
    if not fetch(f"SELECT WHERE {guard()}", (table.class_id, table.version), prepare=True):
        raise _refusal(table)


_TYPES: Mapping[str, str] = {
    "class_id": "bigint",
    "object_id": "text",
    "data": "jsonb",
    "read_acl": "text[]",
    "write_acl": "text[]",
}


def _insert_of(table: ClassTable, names: Iterable[str], *same: str) -> str:
    """Return the guarded statement that stores rows of which each column is an array of texts.

    Its parameters: the value of each column in ``same``, the arrays, the class and its version.
    """
    names = list(names)
    types = {**_TYPES, **{column.name: column.type for column in table.stored_columns.values()}}
    values = [
        *(f"%s::{types[name]}" for name in same),
        *(f"v.c{n}::{types[name]}" for n, name in enumerate(names)),
    ]
    return (
        f"INSERT INTO {table.relation} (created_at, updated_at, {', '.join([*same, *names])})"
        f" SELECT {NOW}, {NOW}, {', '.join(values)}"
        f" FROM unnest({', '.join('%s::text[]' for _ in names)})"
        f" AS v({', '.join(f'c{n}' for n in range(len(names)))}) WHERE {guard()}"
    )


def _insert(
    table: ClassTable,
    statement: str,
    params: Sequence[Any],
    *,
    is_limited: bool = False,
    is_last: bool = False,
) -> str:
    rows = run(table, statement, params, is_limited=is_limited, is_last=is_last)
    if not rows:
        raise _refusal(table)
    return wire_timestamp(rows[0][0])


def _values(
    table: ClassTable, object_id: ObjectId, fields: Mapping[str, Json], acl: Acl
) -> dict[str, Any]:
    """What goes into the columns of a new row, but for its times."""
    columns, data = split(table, fields)
    values: dict[str, Any] = {
        "object_id": object_id,
        "read_acl": None if acl.read_ids is None else list(acl.read_ids),
        "write_acl": None if acl.write_ids is None else list(acl.write_ids),
        "data": data,
        **columns,
    }
    if table.is_partition:
        values["class_id"] = table.class_id
    return values


def _slot(name: str) -> str:
    return "%s::jsonb" if name == "data" else "%s"


def delete(table: ClassTable, object_id: ObjectId, where: Query, scope: Scope) -> bool:
    """Remove the object with this id if it satisfies the constraint; whether there was one."""
    condition = compile_query(where, table, "t", scope)
    statement = (
        f"DELETE FROM {table.relation} t WHERE t.object_id = %s AND {condition.text} AND {guard()}"
        " RETURNING t.object_id"
    )
    params: tuple[Any, ...] = (object_id, *condition.params, table.class_id, table.version)
    if table.relation_values:
        statement = (
            f"WITH gone AS ({statement}), members AS (DELETE FROM objects_relation m"
            " USING gone WHERE m.class_id = %s AND m.owning_id = gone.object_id)"
            " SELECT object_id FROM gone"
        )
        params = (*params, table.class_id)
    return bool(matching_rows(table, statement, params, is_limited=scope.is_limited))


_REMOVE_ALL_MEMBERS: Final = """
DELETE FROM objects_relation
WHERE class_id = %(class_id)s AND key = %(key)s AND owning_id = %(owning_id)s
"""
_REMOVE_MEMBERS: Final = f"{_REMOVE_ALL_MEMBERS} AND related_id = ANY(%(members)s)"
_ADD_MEMBERS: Final = """
INSERT INTO objects_relation (class_id, key, owning_id, related_id)
SELECT %(class_id)s, %(key)s, %(owning_id)s, unnest(%(members)s::text[]) ON CONFLICT DO NOTHING
"""


def change_relations(
    table: ClassTable,
    object_id: ObjectId,
    changes: Mapping[FieldName, ChangeRelation],
    *,
    is_limited: bool = False,
) -> None:
    """Change the members of an object's relations."""
    for key, change in changes.items():
        place = {"class_id": table.class_id, "key": key, "owning_id": object_id}
        if change.clear:
            fetch(_REMOVE_ALL_MEMBERS, place, prepare=True, is_limited=is_limited)
        if change.removed:
            members = {**place, "members": list(change.removed)}
            fetch(_REMOVE_MEMBERS, members, prepare=True, is_limited=is_limited)
        if change.added:
            # Sorted, so that two requests that add the same members can't deadlock.
            members = {**place, "members": sorted(change.added)}
            fetch(_ADD_MEMBERS, members, prepare=True, is_limited=is_limited)


def matching_rows(
    table: ClassTable,
    statement: str,
    params: Sequence[Any],
    *,
    is_limited: bool,
    prepare: bool = True,
) -> list[Row]:
    """Run a guarded statement and return its rows, which may be empty because none match.

    Raises the error of the guard if that is the reason.
    """
    rows = run(table, statement, params, is_limited=is_limited, prepare=prepare)
    if rows:
        return rows
    if not fetch(f"SELECT WHERE {guard()}", (table.class_id, table.version), prepare=True):
        raise _refusal(table)
    # The system may have become writable in between.
    return run(table, statement, params, is_limited=is_limited, prepare=prepare)


def _refusal(table: ClassTable) -> StaleClass:
    """Return the error of a guard that didn't hold; raises ``UnderMaintenance`` if it is that."""
    maintenance.check()
    return StaleClass((table.class_name,))


def run(
    table: ClassTable,
    statement: str,
    params: Sequence[Any],
    *,
    is_limited: bool = False,
    prepare: bool = True,
    is_last: bool = False,
) -> list[Row]:
    """Run a statement that writes and return its rows. Raises the client's error for a refusal."""
    if is_limited:
        written.check()
    try:
        return fetch(statement, params, prepare=prepare, is_limited=is_limited, is_last=is_last)
    except DatabaseError as error:
        refused = refusal(table, error)
        if refused is None:
            raise
        raise refused from None
