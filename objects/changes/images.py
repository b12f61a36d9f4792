"""Captured rows as objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from backend.kernel.memory_pool import MEBIBYTE
from objects.core.names import ClassName, ObjectId, Subject
from objects.core.schema.definition import empty_schema
from objects.database.statements import Row, fetch
from objects.definitions import registry
from objects.definitions.models import GENERIC_TABLE
from objects.sql.rows import object_columns
from objects.sql.tables import ClassTable
from objects.storage.records import Record


@dataclass(frozen=True, slots=True)
class Change:
    """One committed change of one object.

    ``before`` is None if there was no object (or none that its class shows), ``after`` if there is
    none any more. ``table`` is the class as it was when this was read, or later. ``at`` is when the
    change was written, in seconds since the epoch.
    """

    table: ClassTable
    object_id: ObjectId
    before: Record | None
    after: Record | None
    at: float
    left_out: frozenset[str] = frozenset()
    """Fields that an image lacks because it is too large to be read whole."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a captured change is, of which object, and how many bytes it has."""

    txid: str
    seq: int
    class_name: ClassName
    object_id: str
    is_generic: bool
    size: int


LARGEST: Final = 2 * MEBIBYTE
"""Bytes of both images of a change up to which they are read whole."""
_READ: Final = 128 * 1024
"""Bytes of the lists and objects that are read of a larger image, the smallest ones. Other values
are always read: a long text takes little time."""

_HEAD: Final = 6  # columns before those of the images; the last three are the class's
_IMAGE: Final = 6  # columns of an image: a ``records.StoredRow``


_ANY_CLASS: Final = ClassName(Subject("Any"))
_ANY: Final = ClassTable(_ANY_CLASS, 0, 0, GENERIC_TABLE, empty_schema(_ANY_CLASS))


def changes_at(places: Sequence[Place]) -> dict[int, Change | None] | None:
    """Return the changes at these places by number, or None if some places are empty by now.

    The value is None for a change that no subscriber can see: one of a class that has been dropped
    since, or of internal columns only.
    """
    changes: dict[int, Change | None] = {}
    tables: dict[tuple[str, ...], ClassTable | None] = {}
    groups: dict[tuple[ClassName | None, bool], list[Place]] = {}
    for place in places:
        key = (None if place.is_generic else place.class_name, place.size <= LARGEST)
        groups.setdefault(key, []).append(place)
    for (class_name, is_whole), of_class in groups.items():
        params: dict[str, Any] = {
            "txids": [place.txid for place in of_class],
            "numbers": [place.seq for place in of_class],
        }
        if class_name is None:
            rows = fetch(_statement(_ANY, is_whole=is_whole), params, prepare=True)
        else:
            table = registry.find(class_name)
            assert table is not None, "a class of a model is always there"
            statement = _statement(table, is_whole=is_whole)
            rows = fetch(statement, {**params, "class_name": class_name}, prepare=True)
        if len(rows) < len(of_class):
            return None
        for row in rows:
            columns = row[3:_HEAD]
            if columns not in tables:
                tables[columns] = None if columns[0] is None else _current(*columns)
            changes[int(row[0])] = _change(row, tables[columns], is_generic=class_name is None)
    return changes


def _statement(table: ClassTable, *, is_whole: bool) -> str:
    """Return the statement that reads images of this class, as rows of its table.

    ``_ANY`` stands for all generic classes, whose tables have the same columns. Images that aren't
    read whole lack the largest lists and objects in ``data``; behind them are the names of these.
    """
    before, after, parts = "h.before", "h.after", ""
    left_out = "NULL::text AS left_out"
    if not is_whole:
        before, after = _with_part(before, "b"), _with_part(after, "a")
        parts = f" {_part('h.before')} b {_part('h.after')} a"
        left_out = "to_json(b.left_out || a.left_out)::text AS left_out"
    is_class = "c.id = i.class_id" if table is _ANY else "c.name = %(class_name)s"
    return (
        "SELECT i.seq, i.object_id, extract(epoch FROM i.at), c.name, c.id, c.version,"
        f" {object_columns(table, '(i.before)')}, {object_columns(table, '(i.after)')}, i.left_out"
        f" FROM (SELECT h.seq, h.object_id, h.at, h.class_id, {left_out},"
        f" jsonb_populate_record(NULL::{table.storage}, {before}) AS before,"
        f" jsonb_populate_record(NULL::{table.storage}, {after}) AS after"
        # One index lookup per place, even where the planner overestimates the table's size.
        " FROM unnest(%(txids)s::xid8[], %(numbers)s::bigint[]) AS k(txid, seq) CROSS JOIN LATERAL"
        " (SELECT * FROM objects_change h WHERE h.txid = k.txid AND h.seq = k.seq OFFSET 0) h"
        f"{parts} OFFSET 0) i"
        f" LEFT JOIN objects_class c ON {is_class}"
    )


def _with_part(image: str, part: str) -> str:
    return f"(({image} - 'data') || jsonb_build_object('data', {part}.data))"


def _part(image: str) -> str:
    """Return the join with the fields of an image that are read, and the names of the others."""
    return (
        "CROSS JOIN LATERAL ("
        "SELECT COALESCE(jsonb_object_agg(f.key, f.value) FILTER (WHERE f.is_read), '{}') AS data,"
        " COALESCE(array_agg(f.key) FILTER (WHERE NOT f.is_read), '{}') AS left_out"
        " FROM (SELECT e.key, e.value,"
        f" NOT e.is_nested OR sum(e.size) OVER (PARTITION BY e.is_nested ORDER BY e.size, e.key)"
        f" <= {_READ} AS is_read FROM (SELECT m.key, m.value, pg_column_size(m.value) AS size,"
        " jsonb_typeof(m.value) IN ('array', 'object') AS is_nested"
        f" FROM jsonb_each({image} -> 'data') m OFFSET 0) e) f)"
    )


def _change(row: Row, table: ClassTable | None, *, is_generic: bool) -> Change | None:
    _, object_id, at = row[:3]
    before, after = row[_HEAD : _HEAD + _IMAGE], row[_HEAD + _IMAGE : -1]
    left_out = frozenset(msgspec.json.decode(row[-1]) if row[-1] else ())
    if table is None or (before == after and not left_out and not is_generic):
        return None
    return Change(
        table,
        object_id,
        None if before[0] is None else Record(table, before),
        None if after[0] is None else Record(table, after),
        float(at),
        left_out,
    )


def _current(class_name: ClassName, class_id: str, version: str) -> ClassTable | None:
    """Return the class at this version or a later one; None if it has been dropped."""
    table = registry.find(class_name)
    if table is None or (table.class_id, table.version) != (int(class_id), int(version)):
        registry.forget(class_name)
        table = registry.find(class_name)
    return table if table is not None and table.class_id == int(class_id) else None
