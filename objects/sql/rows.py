"""The SQL that reads a row as an object, and writes an object into a row.

Promoted columns are put together with ``data`` here and taken apart here, nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from backend.kernel.errors import IncorrectType
from backend.kernel.json_types import Json
from objects.core.names import FieldName
from objects.sql.fields import wire_form
from objects.sql.fragments import literal
from objects.sql.tables import ClassTable, Column

_encode = msgspec.json.Encoder(decimal_format="number").encode
NOW: Final = "date_trunc('milliseconds', statement_timestamp())"
"""SQL for the statement's time, as precise as times of objects."""


def touched(row: str) -> str:
    """Return SQL for the ``updated_at`` of a changed row: it doesn't run back with the clock."""
    return f"GREATEST({row}.updated_at, {NOW})"


def timestamp_text(expression: str) -> str:
    """A timestamptz expression as text for ``wire_timestamp``.

    As Python datetimes timestamps would cost more than the rest of the row together, and
    ``to_char`` costs PostgreSQL three times as much as this.
    """
    return f"to_json({expression} AT TIME ZONE 'UTC')::text"


def wire_timestamp(text: str) -> str:
    """The wire form of what ``timestamp_text`` reads: ``"2020-01-01T00:00:00.5"``, in quotes."""
    if len(text) == 25:
        return f"{text[1:24]}Z"
    # PostgreSQL leaves out zeros at the end.
    bare = text[1:-1]
    return f"{bare}.000Z" if len(bare) == 19 else f"{bare:0<23}Z"


@dataclass(frozen=True, slots=True)
class Selection:
    """The fields to read of each object, for rows whose size clients mustn't decide.

    Values of more than ``largest`` bytes as JSON are left out. An access list that is larger reads
    as an empty one.
    """

    fields: frozenset[FieldName]
    largest: int


def object_columns(
    table: ClassTable, alias: str, score: str | None = None, selection: Selection | None = None
) -> str:
    """Return the columns that make a ``records.StoredRow``.

    ``score`` is the name of a column of the row that becomes the field ``score`` of the object.
    """
    read_acl = f"array_to_json({alias}.read_acl)::text"
    write_acl = f"array_to_json({alias}.write_acl)::text"
    if selection is None:
        data = data_expression(table, alias)
    else:
        data = _selected(table, alias, selection)
        read_acl = _short_list(read_acl, selection)
        write_acl = _short_list(write_acl, selection)
    if score is not None:
        data = f"({data} || jsonb_build_object('score', {alias}.{score}))"
    return (
        f"{alias}.object_id, {timestamp_text(f'{alias}.created_at')} AS created,"
        f" {timestamp_text(f'{alias}.updated_at')} AS updated,"
        f" {read_acl} AS read_acl, {write_acl} AS write_acl, {data}::text AS data"
    )


def _selected(table: ClassTable, alias: str, selection: Selection) -> str:
    """Return the fields of a selection as one jsonb value. No field may be a computed one."""
    parts = []
    for name in sorted(selection.fields & table.stored_columns.keys()):
        column, type_ = table.columns[name], table.schema.fields[name]
        value = wire_form(column.sql(alias), column, type_.kind, type_.target_class)
        parts.append(
            f"CASE WHEN octet_length(({value})::text) <= {selection.largest}"
            f" THEN jsonb_build_object({literal(name)}, {value}) ELSE '{{}}'::jsonb END"
        )
    names = ", ".join(map(literal, sorted(selection.fields - table.columns.keys())))
    # OFFSET keeps PostgreSQL from reading the whole object again for each of its fields.
    parts.append(
        "(SELECT coalesce(jsonb_object_agg(f.name, o.data -> f.name), '{}'::jsonb)"
        f" FROM (SELECT {alias}.data || '{{}}'::jsonb AS data OFFSET 0) o,"
        f" unnest(ARRAY[{names}]::text[]) f(name)"
        f" WHERE octet_length((o.data -> f.name)::text) <= {selection.largest})"
    )
    return f"({' || '.join(parts)})"


def _short_list(text: str, selection: Selection) -> str:
    return f"CASE WHEN octet_length({text}) > {selection.largest} THEN '[]' ELSE {text} END"


def data_expression(table: ClassTable, alias: str) -> str:
    """Return all fields of the object as one jsonb value, promoted ones included."""
    if not table.columns:
        return f"{alias}.data"
    parts = [f"{alias}.data"]
    for name, column in table.columns.items():
        type_ = table.schema.fields[name]
        expression = column.sql(alias)
        value = wire_form(expression, column, type_.kind, type_.target_class)
        if column.computed is not None:
            # Named once, so that it is computed once.
            parts.append(f"jsonb_strip_nulls(jsonb_build_object({literal(name)}, {expression}))")
            continue
        parts.append(
            f"CASE WHEN {expression} IS NULL THEN '{{}}'::jsonb"
            f" ELSE jsonb_build_object({literal(name)}, {value}) END"
        )
    return f"({' || '.join(parts)})"


def split(table: ClassTable, obj: Mapping[str, Json]) -> tuple[dict[str, Any], str]:
    """Divide an object's fields: parameters for the promoted columns, JSON text for ``data``.

    Every promoted column gets a parameter; a field that the object hasn't, or has as null, is
    NULL there. Computed fields are left out.
    """
    if not table.columns:
        return {}, _encode(obj).decode()
    columns = {
        column.name: column_parameter(column, obj.get(name), name)
        for name, column in table.stored_columns.items()
    }
    unpromoted = {name: value for name, value in obj.items() if name not in table.columns}
    return columns, _encode(unpromoted).decode()


def column_parameter(column: Column, value: Json, place: str) -> Any:
    """Return the parameter that stores a field's value in its promoted column.

    Raises ``IncorrectType`` for a fraction in a column of whole numbers; numbers that are too big
    for their column are found by the database.
    """
    if value is None:
        return None
    if column.type == "jsonb":
        return _encode(value).decode()
    if column.type == "bigint" and not isinstance(value, int):
        raise IncorrectType(f"{place}: expected a whole number")
    if isinstance(value, dict):
        return value["iso"] if column.type == "timestamptz" else value["objectId"]
    return str(value) if column.type == "numeric" else value
