"""The aggregation pipeline as one SQL statement, tested against ``tests.oracles.pipelines``.

Each stage is a SELECT over the one before (``pipeline_rows``). ``$match``, ``$sort``, ``$limit``
and ``$skip`` at the beginning work on the class's own rows and are as fast as a find. Of what a
client wrote nothing is in the text.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import count
from typing import Any, Final

from backend.kernel.errors import InvalidQuery
from objects.core.names import ClassName, Subject
from objects.core.pipeline.expressions import Path
from objects.core.pipeline.projections import Exclude, Include, SetFields
from objects.core.pipeline.stages import (
    Aggregation,
    Count,
    Group,
    Limit,
    Lookup,
    Match,
    Sample,
    Skip,
    Sort,
    SortKey,
    Stage,
    Unwind,
)
from objects.core.query.tree import AllOf, AnyOf, NoneOf, OrderKey, Query, RelatedTo, walk
from objects.core.schema.definition import ClassSchema
from objects.sql.compiler import Scope, compile_query
from objects.sql.fields import SCALAR_KINDS, read
from objects.sql.fragments import Sql
from objects.sql.order import sort_expressions
from objects.sql.pipeline.expressions import Source, condition, expression
from objects.sql.pipeline.groups import group_select
from objects.sql.pipeline.jsonb import joined, object_of, once, order_terms, text_parameter
from objects.sql.pipeline.lookups import joins
from objects.sql.pipeline.projections import Projector, Shape
from objects.sql.pipeline.rows import (
    BY_AGE,
    DocumentSource,
    ObjectSource,
    Order,
    Rows,
    class_path,
    documents_of,
    from_rows,
    native,
    order_clause,
    wire_document,
)
from objects.sql.tables import ClassTable

_NO_NAME: Final = ClassName(Subject(""))
_NO_CLASS: Final = ClassTable(_NO_NAME, 0, 0, "", ClassSchema(_NO_NAME))


def compile_aggregation(aggregation: Aggregation, table: ClassTable, scope: Scope) -> Sql:
    """Return the statement that gives the results, in order, in one jsonb column ``value``."""
    compiler = _Compiler(scope)
    rows = compiler.objects(table, aggregation.where)
    if aggregation.distinct is not None:
        return compiler.distinct(rows, aggregation.distinct)
    rows = compiler.documents(compiler.run(rows, aggregation.stages))
    plain = "CASE WHEN {0}->>'__type' = 'Date' THEN {0}->'iso' ELSE {0} END"
    alias = compiler.alias()
    value = Sql(f"{alias}.data")
    if not aggregation.raw_field_names:
        value = wire_document(value, "{0}" if aggregation.raw_values else plain)
    return "SELECT " + value + " AS value" + from_rows(rows, alias) + order_clause(rows, alias)


class _Compiler:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.numbers = count(1)

    def alias(self) -> str:
        return f"r{next(self.numbers)}"

    def source(self, rows: Rows, alias: str) -> ObjectSource | DocumentSource:
        return DocumentSource(alias) if rows.table is None else ObjectSource(rows.table, alias)

    def objects(
        self, table: ClassTable, where: Query, alias: str | None = None, extra: Sql | None = None
    ) -> Rows:
        alias = alias or self.alias()
        matches = compile_query(where, table, alias, self.scope)
        if extra is not None:
            matches = matches + " AND " + extra
        select = f"SELECT {alias}.* FROM {table.relation} AS {alias} WHERE " + matches
        return Rows(select, table, BY_AGE)

    def documents(self, rows: Rows) -> Rows:
        """Return the rows as documents."""
        if rows.table is None:
            return rows
        alias = self.alias()
        data = ObjectSource(rows.table, alias).document("_id", "_created_at", "_updated_at")
        return documents_of(data + " AS data", rows, alias)

    def run(self, rows: Rows, stages: tuple[Stage, ...]) -> Rows:
        for stage in stages:
            rows = self.stage(stage, rows)
        return rows

    def stage(self, stage: Stage, rows: Rows) -> Rows:
        match stage:
            case Match():
                return self.match(stage, rows)
            case Group():
                return self.group(stage, rows)
            case Include() | Exclude() | SetFields():
                return self.project(stage, rows)
            case Sort():
                return self.sort(stage, rows)
            case Limit() | Skip():
                return self.part(
                    rows, "LIMIT" if isinstance(stage, Limit) else "OFFSET", stage.count
                )
            case Sample():
                return self.sample(stage, rows)
            case Count():
                alias = self.alias()
                data = "jsonb_build_object(" + text_parameter(native(stage.name)) + ", count(*))"
                some = " HAVING count(*) > 0"
                return Rows("SELECT " + data + " AS data" + from_rows(rows, alias) + some, None, ())
            case Unwind():
                return self.unwind(stage, self.documents(rows))
            case Lookup():
                return self.lookup(stage, self.documents(rows))

    # --- which documents, and in which order ---

    def match(self, stage: Match, rows: Rows) -> Rows:
        alias = self.alias()
        if rows.table is None:
            matches = compile_query(_native_query(stage.query), _NO_CLASS, alias, self.scope)
        else:
            matches = compile_query(stage.query, rows.table, alias, self.scope)
        if stage.condition is not None:
            matches = matches + " AND " + condition(stage.condition, self.source(rows, alias))
        return replace(
            rows, select=f"SELECT {alias}.*" + from_rows(rows, alias) + " WHERE " + matches
        )

    def sort(self, stage: Sort, rows: Rows) -> Rows:
        alias = self.alias()
        keys: list[tuple[Sql, bool]] = []
        for key in stage.order:
            keys += [(part, key.descending) for part in self.sort_key(rows, key, alias)]
        order = [Order(self.new_column(), descending) for _, descending in keys]
        columns = [
            ", " + part + f" AS {key.column}" for (part, _), key in zip(keys, order, strict=True)
        ]
        select = f"SELECT {alias}.*" + joined([Sql(""), *columns], "") + from_rows(rows, alias)
        previous = rows.order
        if rows.table is not None and previous is BY_AGE:
            # As in a find, equal objects are in the order of their ids: one index gives both.
            previous = (Order("object_id", stage.order[-1].descending),)
        return Rows(select, rows.table, (*order, *previous))

    def new_column(self) -> str:
        return f"o{next(self.numbers)}"

    def sort_key(self, rows: Rows, key: SortKey, alias: str) -> list[Sql]:
        if rows.table is not None and len(key.path) == 1:
            path = class_path(key.path)
            reading = read(rows.table, path, alias)
            if reading.kind in SCALAR_KINDS or reading.kind is None:
                return sort_expressions(rows.table, OrderKey(path, key.descending), alias)
        value = self.source(rows, alias).field(key.path)
        present = "NULLIF(" + value + ", 'null'::jsonb)"
        return [once([present], term) for term in order_terms("a")]

    def part(self, rows: Rows, word: str, number: int) -> Rows:
        alias = self.alias()
        order = order_clause(rows, alias)
        limit = Sql(f"{order} {word} %s::bigint", (number,))
        return replace(rows, select=f"SELECT {alias}.*" + from_rows(rows, alias) + limit)

    def sample(self, stage: Sample, rows: Rows) -> Rows:
        alias, column = self.alias(), self.new_column()
        select = f"SELECT {alias}.*, random() AS {column}" + from_rows(rows, alias)
        return self.part(Rows(select, rows.table, (Order(column),)), "LIMIT", stage.count)

    def distinct(self, rows: Rows, path: Path) -> Sql:
        alias = self.alias()
        elements = once(
            [self.source(rows, alias).field(path)],
            "CASE WHEN jsonb_typeof(a) = 'array' THEN a WHEN a IS NULL THEN '[]'::jsonb"
            " ELSE jsonb_build_array(a) END",
        )
        return (
            "SELECT m.v AS value FROM (SELECT DISTINCT u.v"
            + from_rows(rows, alias)
            + " CROSS JOIN LATERAL jsonb_array_elements("
            + elements
            + ") AS u(v) WHERE u.v <> 'null'::jsonb) AS m ORDER BY "
            + ", ".join(f"{term} ASC NULLS FIRST" for term in order_terms("m.v"))
        )

    # --- what documents look like ---

    def project(self, stage: Include | Exclude | SetFields, rows: Rows) -> Rows:
        alias = self.alias()
        source = self.source(rows, alias)
        if isinstance(stage, Include):
            data = self.included(stage, source)
        else:
            shaped = self.documents(rows)
            rows, source = shaped, DocumentSource(alias)
            data = self.changed(stage, source)
        return documents_of(data + " AS data", rows, alias)

    def included(self, stage: Include, source: Source) -> Sql:
        projector = Projector("include", lambda node: expression(node, source))
        parts = projector.parts(stage.tree, lambda name: source.field((name,)))
        if stage.keeps_id and all(name != "objectId" for name, _ in parts):
            parts.append(("objectId", source.field(("objectId",))))
        return object_of((native(name), value) for name, value in parts)

    def changed(self, stage: Exclude | SetFields, source: DocumentSource) -> Sql:
        shape: Shape = "exclude" if isinstance(stage, Exclude) else "set"
        projector = Projector(shape, lambda node: expression(node, source))
        parts = projector.parts(stage.tree, lambda name: source.field((name,)))
        replaced = [native(name) for name, _ in stage.tree.parts]
        remaining = "(" + source.data + Sql(" - %s::text[])", (replaced,))
        return remaining + " || " + object_of((native(name), value) for name, value in parts)

    def group(self, stage: Group, rows: Rows) -> Rows:
        alias = self.alias()
        inputs = from_rows(rows, alias)
        columns = [self.new_column() for _ in order_terms("m.k")]
        source = self.source(rows, alias)
        select = group_select(stage, source, inputs, alias, rows.order, columns)
        return Rows(select, None, tuple(Order(column) for column in columns))

    def unwind(self, stage: Unwind, rows: Rows) -> Rows:
        alias, column = self.alias(), self.new_column()
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
        documents = documents_of(data + f" AS data, u.i AS {column}", rows, alias, unwound)
        return replace(documents, order=(*rows.order, Order(column)))

    def lookup(self, stage: Lookup, rows: Rows) -> Rows:
        alias = self.alias()
        joined_documents = self.joined_documents(stage, DocumentSource(alias))
        name = text_parameter(native(stage.name))
        data = (
            f"{alias}.data || jsonb_build_object("
            + name
            + ", COALESCE("
            + joined_documents
            + ", '[]'::jsonb))"
        )
        return documents_of(data + " AS data", rows, alias)

    def joined_documents(self, stage: Lookup, outer: DocumentSource) -> Sql:
        target = self.scope.table(stage.class_name)
        if target is None:
            return Sql("NULL::jsonb")
        table, rights = target
        alias = self.alias()
        extra = None
        if stage.local is not None and stage.foreign is not None:
            foreign = ObjectSource(table, alias).field(stage.foreign)
            extra = joins(outer.field(stage.local), stage.foreign, foreign, table, alias)
        inner = self.documents(self.run(self.objects(table, rights, alias, extra), stage.stages))
        last = self.alias()
        document = wire_document(Sql(f"{last}.data"))
        return (
            "(SELECT jsonb_agg("
            + document
            + order_clause(inner, last)
            + ")"
            + from_rows(inner, last)
            + ")"
        )


def _native_query(query: Query) -> Query:
    """Return the query about documents as they are in ``data``."""
    if any(isinstance(node, RelatedTo) for node in walk(query)):
        raise InvalidQuery("$relatedTo: only before the documents are changed")
    return _renamed(query)


def _renamed(query: Query) -> Query:
    if isinstance(query, AllOf | AnyOf | NoneOf):
        return type(query)(tuple(_renamed(part) for part in query.parts))
    names = [item.name for item in fields(query)]
    path: Any = getattr(query, "path", None) if "path" in names else None
    if not path:
        return query
    return replace(query, path=(native(path[0]), *path[1:]))  # type: ignore[call-arg]
