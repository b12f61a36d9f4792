"""Objects into PostgreSQL: create, update, delete.

A write that sets, deletes, increments or appends whole fields is one statement, so it needs no
lock beyond the row's own and can't lose another's change. Any other write reads the row under a
lock and computes the new object with ``operations.apply``; both ways give the same outcome.

As in ``store``, each statement checks that the class is still the one it was made for, and
satisfies the caller's conditions (the policy's) in the same statement that writes. In the same way
it checks that the system isn't read-only (``maintenance``); all of this raises
``UnderMaintenance`` then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from django.db import transaction
from psycopg.errors import DatabaseError

from backend.kernel.json_types import Json
from objects.access.scope import Scope
from objects.access.write_visibility import Visibility
from objects.core.access.acl import Acl
from objects.core.names import FieldName, ObjectId
from objects.core.query.tree import Query
from objects.core.update.operations import Times, Write, apply, echo
from objects.core.update.operators import ChangeRelation
from objects.database import maintenance
from objects.database.parameters import as_text
from objects.database.statements import Row, fetch, fetch_values
from objects.sql.compiler import compile_query
from objects.sql.fragments import TRUE
from objects.sql.rows import (
    NOW,
    object_columns,
    split,
    timestamp_text,
    touched,
    wire_timestamp,
)
from objects.sql.tables import ClassTable
from objects.storage.assignments import COMPUTED, Assignments, acl_assignments, simple_assignments
from objects.storage.conflicts import refusal
from objects.storage.reads import StaleClass
from objects.storage.records import Record

_TOUCHED: Final = touched("t")


def _guard() -> str:
    """Return the condition of a writing statement. Parameters: the class and its version."""
    return (
        "EXISTS (SELECT FROM objects_class g WHERE g.id = %s AND g.version = %s)"
        f" AND {maintenance.guard()}"
    )


class Written(NamedTuple):
    """The time of a write (wire form), and its results as ``operations.echo`` defines them.

    There are no results if the caller may not read the object. Protected fields are among them.
    """

    timestamp: str
    results: dict[str, Json]


def create(
    table: ClassTable,
    object_id: ObjectId,
    fields: Mapping[str, Json],
    acl: Acl,
    relations: Mapping[FieldName, ChangeRelation],
    *,
    times: Times | None = None,
    is_last: bool = False,
) -> str:
    """Store a new object and return its time: now, or the first of ``times``.

    ``is_last`` as for ``statements.fetch``. Raises ``DuplicateValue`` or ``StaleClass``.
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
        f" SELECT {moments}, {slots} WHERE {_guard()}"
        f" RETURNING {timestamp_text('created_at')}"
    )
    params = (*moment_params, *values.values(), table.class_id, table.version)
    if not relations:
        return _insert(table, statement, params, is_last=is_last)
    with transaction.atomic():
        created_at = _insert(table, statement, params)
        _change_relations(table, object_id, relations)
    return created_at


def create_many(
    table: ClassTable, objects: Sequence[tuple[ObjectId, Mapping[str, Json], Acl]]
) -> str:
    """Store new objects (id, fields, access list) by one statement; their time.

    Raises ``DuplicateValue`` or ``StaleClass``; none is stored then.
    """
    rows_of_values = [_values(table, *new) for new in objects]
    columns = {
        name: [as_text(values[name]) for values in rows_of_values] for name in rows_of_values[0]
    }
    statement = f"{_insert_of(table, columns)} RETURNING {timestamp_text('created_at')}"
    return _insert(table, statement, (*columns.values(), table.class_id, table.version))


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
            _change_relations(table, row.object_id, row.relations)


def stored_ids(table: ClassTable, object_ids: Sequence[ObjectId]) -> set[str]:
    """Those of the ids that objects of the class have."""
    statement = f"SELECT object_id FROM {table.relation} WHERE object_id = ANY(%(ids)s::text[])"
    return set(fetch_values(str, statement, {"ids": list(object_ids)}, prepare=False))


def check_current(table: ClassTable) -> None:
    """Raise ``StaleClass`` or ``UnderMaintenance`` if the class couldn't be written now."""
    if not fetch(f"SELECT WHERE {_guard()}", (table.class_id, table.version), prepare=True):
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
        f" AS v({', '.join(f'c{n}' for n in range(len(names)))}) WHERE {_guard()}"
    )


def _insert(
    table: ClassTable, statement: str, params: Sequence[Any], *, is_last: bool = False
) -> str:
    rows = _write(table, statement, params, is_last=is_last)
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


def update(
    table: ClassTable,
    object_id: ObjectId,
    write: Write,
    where: Query,
    scope: Scope,
    visibility: Visibility,
) -> Written | None:
    """Change the object with this id if it satisfies the constraint; None if there is none.

    Raises ``DuplicateValue``, ``IncorrectType`` (an operator can't work on what is stored),
    ``OperationForbidden`` (it depends on what the caller may not read) or ``StaleClass``.
    """
    if write.is_simple and not write.relations:
        assignments = simple_assignments(table, write)
        if assignments is not None:
            return _update_simple(table, object_id, write, assignments, where, scope, visibility)
    with transaction.atomic():
        record = lock(table, object_id, where, scope)
        return None if record is None else _update_locked(table, record, write, visibility)


def lock(table: ClassTable, object_id: ObjectId, where: Query, scope: Scope) -> Record | None:
    """Read an object and keep others from changing it until the transaction ends."""
    condition = compile_query(where, table, "t", scope)
    rows = _matching_rows(
        table,
        f"SELECT {object_columns(table, 't')} FROM {table.relation} t"
        f" WHERE t.object_id = %s AND {condition.text} AND {_guard()} FOR UPDATE OF t",
        (object_id, *condition.params, table.class_id, table.version),
        prepare=False,
    )
    return Record(table, rows[0]) if rows else None


def _update_locked(
    table: ClassTable, record: Record, write: Write, visibility: Visibility
) -> Written:
    """Carry out a write on an object that ``lock`` has read in this transaction."""
    before = record.object()
    visibility.check_operators(write, before)
    after = apply(write, before)
    columns, data = split(table, _own_fields(table, after))
    assignments = Assignments(
        ("data = %s::jsonb", *(f"{name} = %s" for name in columns)), (data, *columns.values())
    )
    acl = acl_assignments(write.acl)
    clauses = ", ".join((*assignments.clauses, *acl.clauses))
    rows = _write(
        table,
        f"UPDATE {table.relation} t SET updated_at = {_TOUCHED}, {clauses}"
        f" WHERE t.object_id = %s RETURNING {timestamp_text('t.updated_at')}",
        (*assignments.params, *acl.params, record.object_id),
    )
    _change_relations(table, record.object_id, write.relations)
    results = echo(write, after)
    if results and not visibility.is_readable(after):
        results = {}
    return Written(wire_timestamp(rows[0][0]), results)


_NOT_FIELDS = frozenset({"objectId", "createdAt", "updatedAt", "ACL"})


def _own_fields(table: ClassTable, obj: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields that are stored in ``data`` or in promoted columns."""
    return {
        name: value
        for name, value in obj.items()
        if name not in _NOT_FIELDS and name not in table.relation_values
    }


def _update_simple(
    table: ClassTable,
    object_id: ObjectId,
    write: Write,
    assignments: Assignments,
    where: Query,
    scope: Scope,
    visibility: Visibility,
) -> Written | None:
    condition = compile_query(where, table, "t", scope)
    acl = acl_assignments(write.acl)
    echoed = [
        name for name, operation in write.operations.items() if isinstance(operation, COMPUTED)
    ]
    # Most often it is one counter; a column each costs PostgreSQL less than an object of all.
    returned = ", (t.data -> %s)::text" * len(echoed)
    # RETURNING reads the row as the statement leaves it.
    readable = TRUE
    if echoed or write.server_changes:
        readable = compile_query(visibility.condition, table, "t", scope)
    clauses = ", ".join((*assignments.clauses, *acl.clauses))
    rows = _matching_rows(
        table,
        f"UPDATE {table.relation} t SET updated_at = {_TOUCHED}{', ' if clauses else ''}{clauses}"
        f" WHERE t.object_id = %s AND {condition.text} AND {_guard()}"
        f" RETURNING {timestamp_text('t.updated_at')}, {readable.text}{returned}",
        (
            *assignments.params,
            *acl.params,
            object_id,
            *condition.params,
            table.class_id,
            table.version,
            *readable.params,
            *echoed,
        ),
    )
    if not rows:
        return None
    updated_at, is_readable, *values = rows[0]
    if is_readable != "t":
        return Written(wire_timestamp(updated_at), {})
    results = dict(zip(echoed, map(msgspec.json.decode, values), strict=True))
    return Written(wire_timestamp(updated_at), {**results, **write.server_changes})


def delete(table: ClassTable, object_id: ObjectId, where: Query, scope: Scope) -> bool:
    """Remove the object with this id if it satisfies the constraint; whether there was one."""
    condition = compile_query(where, table, "t", scope)
    statement = (
        f"DELETE FROM {table.relation} t WHERE t.object_id = %s AND {condition.text} AND {_guard()}"
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
    return bool(_matching_rows(table, statement, params))


_REMOVE_ALL_MEMBERS: Final = """
DELETE FROM objects_relation
WHERE class_id = %(class_id)s AND key = %(key)s AND owning_id = %(owning_id)s
"""
_REMOVE_MEMBERS: Final = f"{_REMOVE_ALL_MEMBERS} AND related_id = ANY(%(members)s)"
_ADD_MEMBERS: Final = """
INSERT INTO objects_relation (class_id, key, owning_id, related_id)
SELECT %(class_id)s, %(key)s, %(owning_id)s, unnest(%(members)s::text[]) ON CONFLICT DO NOTHING
"""


def _change_relations(
    table: ClassTable, object_id: ObjectId, changes: Mapping[FieldName, ChangeRelation]
) -> None:
    for key, change in changes.items():
        place = {"class_id": table.class_id, "key": key, "owning_id": object_id}
        if change.clear:
            fetch(_REMOVE_ALL_MEMBERS, place, prepare=True)
        if change.removed:
            fetch(_REMOVE_MEMBERS, {**place, "members": list(change.removed)}, prepare=True)
        if change.added:
            # Sorted, so that two requests that add the same members can't deadlock.
            fetch(_ADD_MEMBERS, {**place, "members": sorted(change.added)}, prepare=True)


def _matching_rows(
    table: ClassTable, statement: str, params: Sequence[Any], *, prepare: bool = True
) -> list[Row]:
    """Run a guarded statement and return its rows, which may be empty because none match.

    Raises the error of the guard if that is the reason.
    """
    rows = _write(table, statement, params, prepare=prepare)
    if rows:
        return rows
    guard = f"SELECT WHERE {_guard()}"
    if not fetch(guard, (table.class_id, table.version), prepare=True):
        raise _refusal(table)
    # The system may have become writable in between.
    return _write(table, statement, params, prepare=prepare)


def _refusal(table: ClassTable) -> StaleClass:
    """Return the error of a guard that didn't hold; raises ``UnderMaintenance`` if it is that."""
    maintenance.check()
    return StaleClass((table.class_name,))


def _write(
    table: ClassTable,
    statement: str,
    params: Sequence[Any],
    *,
    prepare: bool = True,
    is_last: bool = False,
) -> list[Row]:
    try:
        return fetch(statement, params, prepare=prepare, is_last=is_last)
    except DatabaseError as error:
        refused = refusal(table, error)
        if refused is None:
            raise
        raise refused from None
