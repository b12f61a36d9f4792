"""Objects of another server into PostgreSQL, with their ids and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from psycopg.errors import DatabaseError

from backend.kernel.json_types import Json
from objects.core.access.acl import Acl
from objects.core.names import FieldName, ObjectId
from objects.database import maintenance
from objects.database.parameters import as_text
from objects.database.statements import fetch, fetch_value
from objects.sql.rows import object_columns, split
from objects.sql.tables import ClassTable
from objects.storage.conflicts import refusal
from objects.storage.records import Record
from objects.storage.writes import check_current

_TYPES: Final = {
    "class_id": "bigint",
    "object_id": "text",
    "created_at": "timestamptz",
    "updated_at": "timestamptz",
    "data": "jsonb",
    "read_acl": "text[]",
    "write_acl": "text[]",
}
_ADD_MEMBERS: Final = """
INSERT INTO objects_relation (class_id, key, owning_id, related_id)
SELECT %(class_id)s, %(key)s, m.owning_id, m.related_id
FROM unnest(%(owning_ids)s::text[], %(related_ids)s::text[]) AS m(owning_id, related_id)
ON CONFLICT DO NOTHING
"""
_COUNT_MEMBERS: Final = """
SELECT count(*) FROM objects_relation r
JOIN unnest(%(owning_ids)s::text[], %(related_ids)s::text[]) AS m(owning_id, related_id)
    USING (owning_id, related_id)
WHERE r.class_id = %(class_id)s AND r.key = %(key)s
"""


class TransferRow(NamedTuple):
    """An object that is ready to be stored; its times are in wire form."""

    object_id: ObjectId
    created_at: str
    updated_at: str
    acl: Acl
    fields: Mapping[str, Json]


def store(table: ClassTable, rows: Sequence[TransferRow]) -> set[str]:
    """Store objects, and replace stored ones that are older; return the ids of both.

    Call it in a transaction. Raises ``DuplicateValue``, ``ObjectTooLarge``, ``IncorrectType``,
    ``ValidationFailed`` or ``StaleClass``; no row is stored then.
    """
    columns: dict[str, list[str | None]] = {}
    for row in rows:
        promoted, data = split(table, row.fields)
        values = {
            "object_id": row.object_id,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
            "read_acl": None if row.acl.read_ids is None else list(row.acl.read_ids),
            "write_acl": None if row.acl.write_ids is None else list(row.acl.write_ids),
            "data": data,
            **promoted,
        }
        if table.is_partition:
            values["class_id"] = table.class_id
        for name, value in values.items():
            columns.setdefault(name, []).append(as_text(value))
    statement = _store_statement(table, list(columns))
    params = (*columns.values(), table.class_id, table.version)
    try:
        ids = [row[0] for row in fetch(statement, params, prepare=False)]
    except DatabaseError as error:
        refused = refusal(table, error)
        if refused is None:
            raise
        raise refused from None
    if len(ids) < len(rows):
        check_current(table)
    return set(ids)


def _store_statement(table: ClassTable, names: Sequence[str]) -> str:
    types = {**_TYPES, **{column.name: column.type for column in table.stored_columns.values()}}
    values = ", ".join(f"v.c{n}::{types[name]}" for n, name in enumerate(names))
    keys = ("object_id", "class_id")
    changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in names if name not in keys)
    return (
        f"INSERT INTO {table.relation} AS t ({', '.join(names)}) SELECT {values}"
        f" FROM unnest({', '.join('%s::text[]' for _ in names)})"
        f" AS v({', '.join(f'c{n}' for n in range(len(names)))})"
        " WHERE EXISTS (SELECT FROM objects_class g WHERE g.id = %s AND g.version = %s)"
        f" AND {maintenance.guard()}"
        f" ON CONFLICT (object_id) DO UPDATE SET {changes}"
        " WHERE t.updated_at < EXCLUDED.updated_at RETURNING t.object_id"
    )


def add_members(
    table: ClassTable, key: FieldName, owning_ids: Sequence[str], related_ids: Sequence[str]
) -> None:
    """Add members to a relation, pair by pair. Those that it has already stay.

    Raises ``StaleClass`` or ``UnderMaintenance``.
    """
    check_current(table)
    fetch(
        _ADD_MEMBERS,
        {
            "class_id": table.class_id,
            "key": key,
            "owning_ids": list(owning_ids),
            "related_ids": list(related_ids),
        },
        prepare=False,
    )


def read(table: ClassTable, object_ids: Sequence[str]) -> list[Record]:
    """Return the objects that have one of these ids."""
    rows = fetch(
        f"SELECT {object_columns(table, 't')} FROM {table.relation} t"
        " WHERE t.object_id = ANY(%(ids)s::text[])",
        {"ids": list(object_ids)},
        prepare=False,
    )
    return [Record(table, row) for row in rows]


def count(table: ClassTable) -> int:
    """Return how many objects the class has."""
    return fetch_value(int, f"SELECT count(*) FROM {table.relation}", {}, prepare=False) or 0


def count_members(
    table: ClassTable, key: FieldName, owning_ids: Sequence[str], related_ids: Sequence[str]
) -> int:
    """Return how many of these pairs the relation has."""
    params = {
        "class_id": table.class_id,
        "key": key,
        "owning_ids": list(owning_ids),
        "related_ids": list(related_ids),
    }
    return fetch_value(int, _COUNT_MEMBERS, params, prepare=False) or 0
