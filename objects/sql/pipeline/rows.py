"""Rows between the stages of an aggregation pipeline, and how expressions read them.

As long as the rows are a class's own they are read like those of a find, by the same indexes.
After that a row is one jsonb column ``data``, with MongoDB's names for what every object has
(``_id``, ``_created_at``, ``_updated_at``), and columns by which the documents are in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from objects.core.names import CREATED_AT, UPDATED_AT, FieldName, FieldPath
from objects.core.pipeline.paths import NATIVE_NAMES, Path
from objects.core.values import FieldKind
from objects.sql.fields import read
from objects.sql.fragments import Sql
from objects.sql.pipeline.jsonb import object_of, once, step, text_parameter
from objects.sql.rows import data_expression
from objects.sql.tables import ClassTable

_NATIVE: Final = {wire: native for native, wire in NATIVE_NAMES.items()}
_NATIVE_ARRAY: Final = "'{_id,_created_at,_updated_at}'::text[]"


@dataclass(frozen=True, slots=True)
class Order:
    """A column that rows are in order by."""

    column: str
    descending: bool = False

    def term(self, alias: str, *, reverse: bool = False) -> str:
        name = f"{alias}.{self.column}"
        if self.column == "object_id":
            name = f'({name} COLLATE "C")'
        descending = self.descending != reverse
        return name + (" DESC NULLS LAST" if descending else " ASC NULLS FIRST")


BY_AGE: Final = (Order("created_at"), Order("object_id"))


@dataclass(frozen=True, slots=True)
class Rows:
    """A SELECT. With a table its rows are the class's, else documents."""

    select: Sql
    table: ClassTable | None
    order: tuple[Order, ...]


class ObjectSource:
    """Expressions over the rows of a class."""

    def __init__(self, table: ClassTable, alias: str) -> None:
        self.table = table
        self.alias = alias

    def field(self, path: Path) -> Sql:
        if not path:
            return self.document("objectId", "createdAt", "updatedAt")
        value = Sql(read(self.table, class_path(path[:1]), self.alias).json)
        for name in path[1:]:
            value = step(value, name)
        return value

    def typed(self, path: Path, kind: FieldKind) -> Sql | None:
        if len(path) != 1:
            return None
        reading = read(self.table, class_path(path), self.alias)
        return Sql(reading.typed) if reading.kind == kind and reading.typed is not None else None

    def document(self, id_name: str, created_name: str, updated_name: str) -> Sql:
        """Return the whole object under these names of what every object has."""
        created, updated = (
            read(self.table, (name,), self.alias).json for name in (CREATED_AT, UPDATED_AT)
        )
        return Sql(
            f"({data_expression(self.table, self.alias)} || jsonb_build_object('{id_name}',"
            f" {self.alias}.object_id, '{created_name}', {created}, '{updated_name}', {updated}))"
        )


def class_path(path: Path) -> FieldPath:
    """Return the path of a field in the rows of a class. Invalid names read as missing."""
    return (FieldName(path[0]), *path[1:])


class DocumentSource:
    """Expressions over documents."""

    def __init__(self, alias: str) -> None:
        self.data = Sql(f"{alias}.data")

    def field(self, path: Path) -> Sql:
        if not path:
            return wire_document(self.data)
        value = "(" + self.data + " -> " + text_parameter(native(path[0])) + ")"
        for name in path[1:]:
            value = step(value, name)
        return value

    def typed(self, path: Path, kind: FieldKind) -> Sql | None:
        return None


def native(name: str) -> str:
    """Return the name of a document's field in the column ``data``."""
    return _NATIVE.get(name, name)


def wire_document(data: Sql, date_form: str = "{}") -> Sql:
    """A document under the names that clients know."""
    return once(
        [data],
        f"(a - {_NATIVE_ARRAY}) || "
        + object_of(
            [
                ("objectId", Sql("a -> '_id'")),
                ("createdAt", Sql(date_form.format("(a -> '_created_at')"))),
                ("updatedAt", Sql(date_form.format("(a -> '_updated_at')"))),
            ]
        ),
    )


def documents_of(columns: Sql, rows: Rows, alias: str, joined: Sql | str = "") -> Rows:
    """Documents made of rows that stand in FROM under the alias, in the order of those.

    ``columns`` are ``data`` and what else is wanted, ``joined`` goes behind FROM.

    OFFSET 0 keeps PostgreSQL from writing the whole document into each place that looks at a
    part of it, which would double the statement with every stage.
    """
    order = "".join(f", {alias}.{key.column}" for key in rows.order)
    select = "SELECT " + columns + order + from_rows(rows, alias) + joined + " OFFSET 0"
    return Rows(select, None, rows.order)


def from_rows(rows: Rows, alias: str) -> Sql:
    """Return the FROM clause."""
    return " FROM (" + rows.select + f") AS {alias}"


def order_clause(rows: Rows, alias: str) -> str:
    """Return the ORDER BY clause; empty if there is no order."""
    if not rows.order:
        return ""
    return " ORDER BY " + ", ".join(key.term(alias) for key in rows.order)
