"""SQL of constraints that policies add to a client's query."""

from __future__ import annotations

from objects.core.query.operators.access_lists import OneOfIds, ReadableBy, WritableBy
from objects.sql.fragments import Sql
from objects.sql.operators.compilation import Compilation, OperatorSql, sql_of


@sql_of(OneOfIds)
class OneOfIdsSql(OperatorSql[OneOfIds]):
    def condition(self, node: OneOfIds, compilation: Compilation) -> Sql:
        return Sql(f"({compilation.alias}.object_id = ANY(%s::text[]))", (sorted(node.ids),))


@sql_of(ReadableBy)
class ReadableBySql(OperatorSql[ReadableBy]):
    def condition(self, node: ReadableBy, compilation: Compilation) -> Sql:
        return _listed(f"{compilation.alias}.read_acl", node.ids)


@sql_of(WritableBy)
class WritableBySql(OperatorSql[WritableBy]):
    def condition(self, node: WritableBy, compilation: Compilation) -> Sql:
        column = f"{compilation.alias}.write_acl"
        if node.is_named:
            return Sql(f"COALESCE({column} && %s::text[], false)", (sorted(node.ids),))
        return _listed(column, node.ids)


def _listed(column: str, ids: frozenset[str]) -> Sql:
    return Sql(f"({column} IS NULL OR {column} && %s::text[])", (sorted(ids),))
