"""The SQL of stages that choose documents, put them in order, or count them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

from backend.kernel.errors import InvalidQuery
from objects.core.names import ClassName, Subject
from objects.core.pipeline.field_types import typed
from objects.core.pipeline.stages.selection import (
    Count,
    Limit,
    Match,
    Sample,
    Skip,
    Sort,
    SortKey,
)
from objects.core.query.tree import AllOf, AnyOf, NoneOf, OrderKey, Query, RelatedTo, walk
from objects.core.schema.definition import ClassSchema
from objects.sql.compiler import compile_query
from objects.sql.fields import SCALAR_KINDS, read
from objects.sql.fragments import Sql
from objects.sql.order import sort_expressions
from objects.sql.pipeline.compilation import Compilation, StageSql, sql_of
from objects.sql.pipeline.expressions import condition
from objects.sql.pipeline.jsonb import joined, once, order_terms, text_parameter
from objects.sql.pipeline.rows import BY_AGE, Order, Rows, class_path, from_rows, native
from objects.sql.tables import ClassTable

_NO_NAME: Final = ClassName(Subject(""))
_NO_CLASS: Final = ClassTable(_NO_NAME, 0, 0, "", ClassSchema(_NO_NAME))


@sql_of(Match)
class MatchSql(StageSql[Match]):
    def rows(self, stage: Match, rows: Rows, compilation: Compilation) -> Rows:
        alias, scope = compilation.alias(), compilation.scope
        if rows.table is None:
            matches = compile_query(_native_query(stage.query), _NO_CLASS, alias, scope)
        else:
            query = typed(stage.query, rows.table.schema)
            matches = compile_query(query, rows.table, alias, scope)
        if stage.condition is not None:
            source = compilation.source(rows, alias)
            test = condition(stage.condition, source)
            if rows.table is not None:
                test = compilation.guarded(test, rows, alias, "boolean")
            matches = matches + " AND " + test
        if rows.table is None:
            matches = compilation.guarded(matches, rows, alias, "boolean")
        return replace(
            rows, select=f"SELECT {alias}.*" + from_rows(rows, alias) + " WHERE " + matches
        )


@sql_of(Sort)
class SortSql(StageSql[Sort]):
    def rows(self, stage: Sort, rows: Rows, compilation: Compilation) -> Rows:
        alias = compilation.alias()
        keys: list[tuple[Sql, bool]] = []
        for key in stage.order:
            terms = _sort_terms(rows, key, alias, compilation)
            keys += [(term, key.descending) for term in terms]
        if rows.table is None:
            first, descending = keys[0]
            keys[0] = (compilation.guarded(first, rows, alias, "numeric"), descending)
        order = [Order(compilation.new_column(), descending) for _, descending in keys]
        columns = [
            ", " + term + f" AS {key.column}" for (term, _), key in zip(keys, order, strict=True)
        ]
        select = f"SELECT {alias}.*" + joined([Sql(""), *columns], "") + from_rows(rows, alias)
        previous = rows.order
        if rows.table is not None and previous is BY_AGE:
            # As in a find, equal objects are in the order of their ids: one index gives both.
            previous = (Order("object_id", stage.order[-1].descending),)
        return Rows(select, rows.table, (*order, *previous))


def _sort_terms(rows: Rows, key: SortKey, alias: str, compilation: Compilation) -> list[Sql]:
    if rows.table is not None and len(key.path) == 1:
        path = class_path(key.path)
        reading = read(rows.table, path, alias)
        if reading.kind in SCALAR_KINDS or reading.kind is None:
            return sort_expressions(rows.table, OrderKey(path, key.descending), alias)
    value = compilation.source(rows, alias).field(key.path)
    present = "NULLIF(" + value + ", 'null'::jsonb)"
    return [once([present], term) for term in order_terms("a")]


@sql_of(Limit)
class LimitSql(StageSql[Limit]):
    def rows(self, stage: Limit, rows: Rows, compilation: Compilation) -> Rows:
        return compilation.part(rows, "LIMIT", stage.count)


@sql_of(Skip)
class SkipSql(StageSql[Skip]):
    def rows(self, stage: Skip, rows: Rows, compilation: Compilation) -> Rows:
        return compilation.part(rows, "OFFSET", stage.count)


@sql_of(Sample)
class SampleSql(StageSql[Sample]):
    def rows(self, stage: Sample, rows: Rows, compilation: Compilation) -> Rows:
        alias, column = compilation.alias(), compilation.new_column()
        select = f"SELECT {alias}.*, random() AS {column}" + from_rows(rows, alias)
        shuffled = Rows(select, rows.table, (Order(column),))
        return compilation.part(shuffled, "LIMIT", stage.count)


@sql_of(Count)
class CountSql(StageSql[Count]):
    def rows(self, stage: Count, rows: Rows, compilation: Compilation) -> Rows:
        alias = compilation.alias()
        data = "jsonb_build_object(" + text_parameter(native(stage.name)) + ", count(*))"
        some = " HAVING count(*) > 0"
        return Rows("SELECT " + data + " AS data" + from_rows(rows, alias) + some, None, ())


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
