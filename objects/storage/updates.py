"""Objects in PostgreSQL: update.

A write that sets, deletes, increments or appends whole fields is one statement, so it needs no
lock beyond the row's own and can't lose another's change. Any other write reads the row under a
lock and computes the new object with ``operations.apply``; both ways give the same outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from django.db import transaction

from backend.kernel.errors import ObjectTooLarge
from backend.kernel.json_types import Json
from backend.kernel.limits import written
from backend.settings.conf import service_settings
from objects.access.scope import Scope
from objects.access.write_visibility import Visibility
from objects.core.names import ObjectId
from objects.core.query.tree import Query
from objects.core.update.operations import Write, apply, echo
from objects.core.update.operators import Add
from objects.sql.compiler import compile_query
from objects.sql.fragments import TRUE
from objects.sql.rows import object_columns, split, timestamp_text, touched, wire_timestamp
from objects.sql.tables import ClassTable
from objects.storage.assignments import COMPUTED, Assignments, acl_assignments, simple_assignments
from objects.storage.records import Record
from objects.storage.writes import change_relations, guard, matching_rows, run

_encode: Final = msgspec.json.Encoder().encode
_TOUCHED: Final = touched("t")
_LONG: Final = 64 * 1024
"""Bytes of an object, uncompressed, from which a client's ``Add`` looks at the size of the list."""


class Written(NamedTuple):
    """The time of a write (wire form), and its results as ``operations.echo`` defines them.

    There are no results if the caller may not read the object. Protected fields are among them.
    """

    timestamp: str
    results: dict[str, Json]


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
            done = _update_simple(table, object_id, write, assignments, where, scope, visibility)
            if done is not None or not _may_grow(write, scope):
                return done
    with transaction.atomic():
        record = lock(table, object_id, where, scope)
        if record is None:
            return None
        return _update_locked(table, record, write, visibility, is_limited=scope.is_limited)


def lock(table: ClassTable, object_id: ObjectId, where: Query, scope: Scope) -> Record | None:
    """Read an object and keep others from changing it until the transaction ends."""
    condition = compile_query(where, table, "t", scope)
    rows = matching_rows(
        table,
        f"SELECT {object_columns(table, 't')} FROM {table.relation} t"
        f" WHERE t.object_id = %s AND {condition.text} AND {guard()} FOR UPDATE OF t",
        (object_id, *condition.params, table.class_id, table.version),
        is_limited=scope.is_limited,
        prepare=False,
    )
    return Record(table, rows[0]) if rows else None


def _update_locked(
    table: ClassTable, record: Record, write: Write, visibility: Visibility, *, is_limited: bool
) -> Written:
    """Carry out a write on an object that ``lock`` has read in this transaction."""
    before = record.object()
    visibility.check_operators(write, before)
    after = apply(write, before)
    columns, data = split(table, _own_fields(table, after))
    results = echo(write, after)
    if results and not visibility.is_readable(after):
        results = {}
    if is_limited and len(data) > len(record.fields_json):
        # Of what the caller may read: a refusal would reveal the size of other fields.
        _check_results(visibility.without_protected(results))
    assignments = Assignments(
        ("data = %s::jsonb", *(f"{name} = %s" for name in columns)), (data, *columns.values())
    )
    acl = acl_assignments(write.acl)
    clauses = ", ".join((*assignments.clauses, *acl.clauses))
    rows = run(
        table,
        f"UPDATE {table.relation} t SET updated_at = {_TOUCHED}, {clauses}"
        f" WHERE t.object_id = %s RETURNING {timestamp_text('t.updated_at')}",
        (*assignments.params, *acl.params, record.object_id),
        is_limited=is_limited,
    )
    if is_limited:
        written.count(len(data))
    change_relations(table, record.object_id, write.relations, is_limited=is_limited)
    return Written(wire_timestamp(rows[0][0]), results)


def _check_results(results: Mapping[str, Json]) -> None:
    """Raise ``ObjectTooLarge`` if operators of a client have made a field that it couldn't send.

    SDKs rely on the results of operators, so these are sent whole, and need a limit.
    """
    most = service_settings.MAX_CLIENT_BODY_SIZE
    for name, value in results.items():
        if isinstance(value, list | dict) and len(_encode(value)) > most:
            raise ObjectTooLarge(
                f"{name}: operators of clients make a value of at most {most:,} bytes:"
                " store a long list as objects of a class."
            )


def _may_grow(write: Write, scope: Scope) -> bool:
    """Whether a statement for a client leaves a long object to ``_update_locked``."""
    return scope.is_limited and any(isinstance(each, Add) for each in write.operations.values())


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
    short = f" AND pg_column_size(t.data || '{{}}') < {_LONG}" if _may_grow(write, scope) else ""
    rows = matching_rows(
        table,
        f"UPDATE {table.relation} t SET updated_at = {_TOUCHED}{', ' if clauses else ''}{clauses}"
        f" WHERE t.object_id = %s AND {condition.text} AND {guard()}{short}"
        f" RETURNING {timestamp_text('t.updated_at')}, {readable.text}, pg_column_size(t.data)"
        f"{returned}",
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
        is_limited=scope.is_limited,
    )
    if not rows:
        return None
    updated_at, is_readable, size, *values = rows[0]
    if scope.is_limited:
        written.count(int(size))
    if is_readable != "t":
        return Written(wire_timestamp(updated_at), {})
    results = dict(zip(echoed, map(msgspec.json.decode, values), strict=True))
    return Written(wire_timestamp(updated_at), {**results, **write.server_changes})
