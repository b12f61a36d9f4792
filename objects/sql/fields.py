"""How a field of a class is read in SQL.

``field_expression`` is what declared indexes are made on, and what ranges, orders and equality on
indexed fields are written with. PostgreSQL uses an index only for the very expression that it
was made on, so both take it from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from objects.core.names import FieldName
from objects.core.query.paths import is_index
from objects.core.query.tree import Path, Steps
from objects.core.values import FieldKind
from objects.sql.fragments import literal
from objects.sql.tables import ClassTable, Column

SCALAR_KINDS: Final = frozenset({"String", "Number", "Boolean", "Date", "Pointer"})
"""Kinds whose ``field_expression`` has an order."""
SINGLE_KINDS: Final = SCALAR_KINDS | {"GeoPoint", "Bytes", "File"}
"""Kinds whose values are neither lists nor objects of any shape."""

NULLS: Final = {False: " NULLS FIRST", True: " NULLS LAST"}
"""Where missing values are in an (ascending, descending) order and in its index."""

SHORT: Final = 128
"""Characters of a String that a learned index holds. An entry of a btree has at most 2704 bytes,
and no write may fail because of an undeclared index."""

TEXT_KEYS: Final = {"Date": "iso", "Pointer": "objectId", "File": "name", "Bytes": "base64"}
_FIXED_COLUMNS: Final = {
    "objectId": (Column("object_id", "text"), "String"),
    "createdAt": (Column("created_at", "timestamptz"), "Date"),
    "updatedAt": (Column("updated_at", "timestamptz"), "Date"),
}


def field_expression(field: str, kind: FieldKind, data: str = "data") -> str:
    """Return the SQL of a field in ``data``, in the type that its values are compared in.

    Text (collation "C") for String, Date, Pointer, File and Bytes, numeric for Number, point
    (longitude, latitude) for GeoPoint, jsonb for others. Null and missing are NULL; the field must
    hold values of its kind only.
    """
    name = literal(field)
    if kind == "String":
        return f'(({data}->>{name}) COLLATE "C")'
    if kind == "Number":
        # By way of text: taking the number out of jsonb as jsonb first costs twice as much.
        return f"({data}->>{name})::numeric"
    if kind in TEXT_KEYS:
        return f"""(({data}#>>'{{{name[1:-1]},{TEXT_KEYS[kind]}}}') COLLATE "C")"""
    if kind == "GeoPoint":
        longitude, latitude = (
            f"({data}#>>'{{{name[1:-1]},{key}}}')::float8" for key in ("longitude", "latitude")
        )
        return f"point({longitude}, {latitude})"
    return f"NULLIF({data}->{name}, 'null'::jsonb)"


def short_expression(typed: str) -> str:
    """Return the beginning of a String.

    It compares with a text of fewer than ``SHORT`` characters exactly as the whole String does.
    """
    return f"left({typed}, {SHORT})"


def learned_column(table: ClassTable, field: FieldName, *, descending: bool = False) -> str:
    """A field as a column of a learned btree index."""
    direction = "DESC" if descending else "ASC"
    nulls = "" if field in _FIXED_COLUMNS else NULLS[descending]
    return f"({learned_expression(table, field)}) {direction}{nulls}"


def learned_expression(table: ClassTable, field: FieldName) -> str:
    """What a learned btree index on a field is made on."""
    expression = column_expression(table, field)
    reading = read(table, (field,), "")
    is_long = reading.column is None and reading.kind == "String"
    return short_expression(expression) if is_long else expression


def column_expression(table: ClassTable, field: FieldName, alias: str = "") -> str:
    """What an index on a field of a class is made on, whether or not it has a column."""
    reading = read(table, (field,), alias)
    assert reading.kind is not None
    if reading.column is None:
        data = f"{alias}.data" if alias else "data"
        return field_expression(field, reading.kind, data)
    return reading.typed or reading.json


def index_method(kind: FieldKind) -> str:
    """Return the kind of index that ``field_expression`` is for."""
    return "gist" if kind == "GeoPoint" else "btree"


def index_column(table: ClassTable, field: FieldName, *, descending: bool = False) -> str:
    """A field as a column of a btree index, in the order that queries sort it in."""
    expression = column_expression(table, field)
    direction = "DESC" if descending else "ASC"
    nulls = "" if field in _FIXED_COLUMNS else NULLS[descending]
    return f"({expression}) {direction}{nulls}"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the value at a path is read.

    ``base`` is jsonb, and the value is found by ``steps`` from there. When the path is a whole
    field, ``kind`` is its kind (None if the class has no such field), ``json`` its wire form (NULL
    if missing), ``typed`` the value in SQL's own type, ``column`` its promoted column if any and
    ``name`` that column's name in SQL unless it is jsonb.
    """

    base: str
    steps: Steps
    is_whole: bool
    kind: FieldKind | None
    column: Column | None
    name: str | None
    json: str
    typed: str | None
    target_class: str | None
    is_indexed: bool
    short: str | None = None
    """The beginning of a String, as learned indexes hold it; None if none does."""
    indexed: str | None = None
    """What the index of all fields is on, if that isn't ``base`` itself (``index_of_all``)."""
    sorts_by_short: bool = False
    """Whether ranges and orders are those of ``short``: no declared index begins with it."""

    @property
    def is_exact(self) -> bool:
        """Whether the path names indexes of lists, so that nothing is implicit."""
        return any(map(is_index, self.steps))


@lru_cache(maxsize=4096)
def _field_texts(field: str, kind: FieldKind, data: str) -> tuple[str, str | None]:
    typed = field_expression(field, kind, data) if kind in SINGLE_KINDS else None
    return f"({data}->{literal(field)})", typed


def read(table: ClassTable, path: Path, alias: str) -> Reading:
    """Return how a path is read in the rows of a class."""
    if len(path) > 1:
        return _read(table, path, alias)
    key = (path[0], alias)
    reading: Reading | None = table.readings.get(key)
    if reading is None:
        reading = _read(table, path, alias)
        if reading.kind is not None:  # a client may ask for any number of fields that aren't there
            table.readings[key] = reading
    return reading


def _read(table: ClassTable, path: Path, alias: str) -> Reading:
    dot = f"{alias}." if alias else ""
    name, is_whole = path[0], len(path) == 1
    column: Column | None
    if name in _FIXED_COLUMNS:
        column, kind = _FIXED_COLUMNS[name]
        target_class = None
    else:
        field_type = table.schema.field_type(name)
        kind = field_type.kind if field_type else None  # type: ignore[assignment]
        target_class = field_type.target_class if field_type else None
        column = table.columns.get(name)
    if column is not None:
        sql_name = column.sql(alias)
        wire = wire_form(sql_name, column, kind, target_class)
        return Reading(
            base=wire,
            steps=path[1:],
            is_whole=is_whole,
            kind=kind,  # type: ignore[arg-type]
            column=column,
            name=sql_name if column.type != "jsonb" else None,
            json=wire,
            typed=_typed_column(sql_name, column, kind),
            target_class=target_class,
            is_indexed=is_whole and column.type != "jsonb",
        )
    data = f"{dot}data"
    if kind is None:
        json, typed = "NULL::jsonb", None
    else:
        json, typed = _field_texts(name, kind, data)
    is_indexed = is_whole and _leads_index(table, name)
    short = None
    if is_whole and typed is not None and name in table.short_fields:
        short = short_expression(typed)
    return Reading(
        base=data,
        steps=path,
        is_whole=is_whole,
        kind=kind,  # type: ignore[arg-type]
        column=None,
        name=None,
        json=json,
        typed=typed,
        target_class=target_class,
        is_indexed=is_indexed,
        short=short,
        indexed=f"{table.indexed}({data})" if table.indexed else None,
        sorts_by_short=short is not None and not is_indexed,
    )


def _leads_index(table: ClassTable, field: FieldName) -> bool:
    return any(
        index.fields[0][0] == field and isinstance(index.fields[0][1], int)
        for index in table.schema.index_declarations.values()
    )


def _typed_column(name: str, column: Column, kind: str | None) -> str | None:
    if column.type == "text":
        return f'({name} COLLATE "C")'
    if column.type != "jsonb":
        return name
    if kind in TEXT_KEYS:
        return f"""(({name}->>'{TEXT_KEYS[kind]}') COLLATE "C")"""
    if kind == "String":
        return f"""(({name}#>>'{{}}') COLLATE "C")"""
    if kind == "Number":
        return f"(CASE WHEN jsonb_typeof({name}) = 'number' THEN ({name})::numeric END)"
    if kind == "Boolean":
        return f"NULLIF({name}, 'null'::jsonb)"
    if kind == "GeoPoint":
        longitude, latitude = (f"({name}->>'{key}')::float8" for key in ("longitude", "latitude"))
        return f"point({longitude}, {latitude})"
    return None


def wire_form(name: str, column: Column, kind: str | None, target_class: str | None) -> str:
    """A column as the wire JSON of its field; NULL if it is NULL."""
    if column.type == "jsonb":
        return name
    if column.type == "timestamptz":
        iso = f"""to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""
        wire = f"jsonb_build_object('__type', 'Date', 'iso', {iso})"
    elif kind == "Pointer":
        class_name = literal(target_class or "")
        wire = (
            f"jsonb_build_object('__type', 'Pointer', 'className', {class_name},"
            f" 'objectId', {name})"
        )
    else:
        return f"to_jsonb({name})"
    return f"(CASE WHEN {name} IS NOT NULL THEN {wire} END)"
