"""SQL of constraints on one field and a list of values."""

from __future__ import annotations

from functools import partial

from objects.core.query.operators.membership import ContainedBy, ContainsAll, In, NotIn
from objects.sql import index_of_all, jsonpath
from objects.sql.fields import SINGLE_KINDS
from objects.sql.fragments import FALSE, Sql, both, json_text, negation
from objects.sql.operators.compilation import Compilation, OperatorSql, sql_of
from objects.sql.values import each_candidate, fits, is_subset


@sql_of(In)
class InSql(OperatorSql[In]):
    def condition(self, node: In, compilation: Compilation) -> Sql:
        return compilation.any_value(node.path, node.values)

    def required(self, node: In, compilation: Compilation) -> Sql:
        condition = compilation.computed_condition(node.path, node.values)
        return compilation.any_value(node.path, node.values) if condition is None else condition


@sql_of(NotIn)
class NotInSql(OperatorSql[NotIn]):
    def condition(self, node: NotIn, compilation: Compilation) -> Sql:
        return negation(compilation.any_value(node.path, node.values))


@sql_of(ContainsAll)
class ContainsAllSql(OperatorSql[ContainsAll]):
    def condition(self, node: ContainsAll, compilation: Compilation) -> Sql:
        if not node.values:
            return FALSE
        reading = compilation.read(node.path)
        if (
            reading.is_whole
            and reading.kind == "Array"
            and reading.column is None
            and all(value is not None and jsonpath.is_simple(value) for value in node.values)
        ):
            contained = json_text({node.path[0]: list(node.values)})
            return index_of_all.contains(reading, contained)
        return both(compilation.any_value(node.path, (value,)) for value in node.values)


@sql_of(ContainedBy)
class ContainedBySql(OperatorSql[ContainedBy]):
    def condition(self, node: ContainedBy, compilation: Compilation) -> Sql:
        reading = compilation.read(node.path)
        if reading.is_whole and reading.kind == "Relation":
            ids = [
                value["objectId"]
                for value in node.values
                if isinstance(value, dict) and fits(value, reading)
            ]
            other = Sql("NOT (r.related_id = ANY(%s::text[]))", (ids,))
            return both(
                [
                    compilation.members(node.path[0]),
                    negation(compilation.members(node.path[0], other)),
                ]
            )
        if reading.is_whole and reading.kind in SINGLE_KINDS:
            return FALSE
        return each_candidate(reading, partial(is_subset, values=node.values))
