"""The SQL of ``$unwind`` and ``$lookup``."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from objects.core.pipeline.paths import Path
from objects.core.pipeline.stages.joins import Lookup, Unwind
from objects.sql import index_of_all
from objects.sql.fragments import Sql
from objects.sql.pipeline.compilation import Compilation, StageSql, sql_of
from objects.sql.pipeline.jsonb import once, text_parameter
from objects.sql.pipeline.rows import (
    DocumentSource,
    ObjectSource,
    Order,
    Rows,
    documents_of,
    from_rows,
    native,
    order_clause,
    wire_document,
)
from objects.sql.pipeline.sizes import is_within, running_size, size_of
from objects.sql.tables import ClassTable

_AS_ARRAY: Final = (
    "CASE WHEN jsonb_typeof(a) = 'array' THEN a"
    " ELSE jsonb_build_array(COALESCE(a, 'null'::jsonb)) END"
)


@sql_of(Unwind)
class UnwindSql(StageSql[Unwind]):
    def rows(self, stage: Unwind, rows: Rows, compilation: Compilation) -> Rows:
        rows = compilation.documents(rows)
        alias, column = compilation.alias(), compilation.new_column()
        path = [native(stage.path[0]), *stage.path[1:]]
        value = Sql(f"({alias}.data #> %s::text[])", (path,))
        data = Sql(f"jsonb_set({alias}.data, %s::text[], u.e)", (path,))
        join = "CROSS JOIN"
        if stage.keep_empty:
            join = "LEFT JOIN"
            empty = (
                "CASE WHEN "
                + value
                + " = '[]'::jsonb THEN "
                + f"{alias}.data #- "
                + Sql(f"%s::text[] ELSE {alias}.data END", (path,))
            )
            data = "CASE WHEN u.e IS NULL THEN " + empty + " ELSE " + data + " END"
        if stage.index_name is not None:
            is_array = "jsonb_typeof(" + value + ") = 'array'"
            position = "CASE WHEN " + is_array + " THEN u.i - 1 END"
            name = text_parameter(native(stage.index_name))
            data = "(" + data + ") || jsonb_build_object(" + name + ", " + position + ")"
        elements = once(
            [value],
            "CASE WHEN jsonb_typeof(a) = 'array' THEN a WHEN a IS NULL OR a = 'null'::jsonb"
            " THEN '[]'::jsonb ELSE jsonb_build_array(a) END",
        )
        unwound = (
            f" {join} LATERAL jsonb_array_elements(" + elements + ") WITH ORDINALITY AS u(e, i)"
        )
        if stage.keep_empty:
            unwound = unwound + " ON TRUE"
        data = compilation.guarded(data, rows, alias)
        documents = documents_of(data + f" AS data, u.i AS {column}", rows, alias, unwound)
        return replace(documents, order=(*rows.order, Order(column)))


@sql_of(Lookup)
class LookupSql(StageSql[Lookup]):
    def rows(self, stage: Lookup, rows: Rows, compilation: Compilation) -> Rows:
        rows = compilation.documents(rows)
        alias = compilation.alias()
        joined_documents = _joined_documents(stage, DocumentSource(alias), compilation)
        name = text_parameter(native(stage.name))
        data = (
            f"{alias}.data || jsonb_build_object("
            + name
            + ", COALESCE("
            + joined_documents
            + ", '[]'::jsonb))"
        )
        return documents_of(compilation.guarded(data, rows, alias) + " AS data", rows, alias)


def _joined_documents(stage: Lookup, outer: DocumentSource, compilation: Compilation) -> Sql:
    target = compilation.scope.table(stage.class_name)
    if target is None:
        return Sql("NULL::jsonb")
    table, rights = target
    alias = compilation.alias()
    extra = None
    if stage.local is not None and stage.foreign is not None:
        foreign = ObjectSource(table, alias).field(stage.foreign)
        extra = _joins(outer.field(stage.local), stage.foreign, foreign, table, alias)
    objects = compilation.objects(table, rights, alias, extra)
    inner = compilation.documents(compilation.run(objects, stage.stages))
    last, collected = compilation.alias(), compilation.alias()
    document = compilation.guarded(wire_document(Sql(f"{last}.data")), inner, last)
    order = "".join(f", {last}.{key.column}" for key in inner.order)
    documents = "SELECT " + document + f" AS data{order}" + from_rows(inner, last) + " OFFSET 0"
    return (
        f"(SELECT jsonb_agg({collected}.data{order_clause(inner, collected)})"
        f" FILTER (WHERE {is_within(f'{collected}.size', compilation.limits.document)})"
        f" FROM (SELECT d.*, {running_size(size_of('d.data'))} AS size FROM ("
        + documents
        + f") AS d) AS {collected})"
    )


def _joins(local: Sql, path: Path, foreign: Sql, table: ClassTable, alias: str) -> Sql:
    """Return the condition that objects of the table are joined to a local value.

    ``path`` is the one of the foreign field, and ``foreign`` reads it under ``alias``.
    """
    locals_ = "jsonb_array_elements(" + once([local], _AS_ARRAY) + ") AS l(v)"
    if path == ("objectId",):
        ids = (
            "SELECT CASE WHEN jsonb_typeof(l.v) = 'string' THEN l.v #>> '{}'"
            " WHEN l.v->>'__type' = 'Pointer' AND l.v->>'className' = "
            + text_parameter(table.class_name)
            + " THEN l.v->>'objectId' END FROM "
            + locals_
        )
        return f"{alias}.object_id = ANY(ARRAY(" + ids + "))"
    same = (
        "EXISTS (SELECT 1 FROM "
        + locals_
        + ", jsonb_array_elements("
        + once([foreign], _AS_ARRAY)
        + ") AS x(v) WHERE x.v = l.v OR (jsonb_typeof(l.v) = 'string'"
        " AND x.v->>'__type' = 'Pointer' AND x.v->>'objectId' = l.v #>> '{}'))"
    )
    if len(path) > 1 or path[0] in table.columns or path[0] in ("createdAt", "updatedAt"):
        return same
    return _may_contain(path[0], locals_, alias, table.indexed) + " AND " + same


def _may_contain(name: str, locals_: Sql, alias: str, indexed: str) -> Sql:
    """A condition that the index of all fields serves; all objects fulfil it for null."""
    key = text_parameter(name)
    pointer = "jsonb_build_object('__type', 'Pointer', 'objectId', l.v)"
    contents = [
        "l.v",
        "jsonb_build_array(l.v)",
        f"CASE WHEN jsonb_typeof(l.v) = 'string' THEN {pointer} ELSE l.v END",
        f"jsonb_build_array(CASE WHEN jsonb_typeof(l.v) = 'string' THEN {pointer} ELSE l.v END)",
    ]
    rows = Sql("")
    for index, content in enumerate(contents):
        row = "(CASE WHEN l.v = 'null'::jsonb THEN '{}'::jsonb ELSE jsonb_build_object(" + key
        rows = rows + (", " if index else "") + row + f", {content}) END)"
    documents = (
        "ARRAY(SELECT p.v FROM " + locals_ + " CROSS JOIN LATERAL (VALUES " + rows + ") AS p(v))"
    )
    return index_of_all.may_contain(name, f"{alias}.data", indexed, documents)
