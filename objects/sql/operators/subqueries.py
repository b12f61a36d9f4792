"""SQL of constraints on objects of other classes."""

from __future__ import annotations

from functools import partial

from objects.core.query.operators.subqueries import InQuery, RelatedTo, Select
from objects.sql import jsonpath
from objects.sql.fields import SINGLE_KINDS
from objects.sql.fragments import FALSE, Sql, either, negation
from objects.sql.operators.compilation import RELATIONS, Compilation, OperatorSql, sql_of
from objects.sql.values import each_candidate, each_element, selected_values


@sql_of(InQuery)
class InQuerySql(OperatorSql[InQuery]):
    def condition(self, node: InQuery, compilation: Compilation) -> Sql:
        condition = self._points_in(node, compilation)
        return negation(condition) if node.negated else condition

    def _points_in(self, node: InQuery, compilation: Compilation) -> Sql:
        reading = compilation.read(node.path)
        class_name = compilation.queried_class(node.query)
        if (
            reading.is_whole
            and reading.kind in SINGLE_KINDS | {"Relation"}
            and (reading.kind not in ("Pointer", "Relation") or reading.target_class != class_name)
        ):
            return FALSE
        ids = compilation.subquery(node.query, lambda _table, alias: Sql(f"{alias}.object_id"))
        if ids is None:
            return FALSE
        if reading.is_whole and reading.kind == "Relation":
            return compilation.members(node.path[0], "r.related_id IN " + ids)
        if reading.is_whole and reading.kind == "Pointer":
            return f"({reading.typed} IN " + ids + ")"
        pointers = f"{jsonpath.has_type('Pointer')} && {jsonpath.class_is(class_name)}"
        return each_element(reading, pointers, lambda c: f"(({c}->>'objectId') IN " + ids + ")")


@sql_of(Select)
class SelectSql(OperatorSql[Select]):
    def condition(self, node: Select, compilation: Compilation) -> Sql:
        condition = self._has_value(node, compilation)
        return negation(condition) if node.negated else condition

    def _has_value(self, node: Select, compilation: Compilation) -> Sql:
        reading = compilation.read(node.path)
        values = compilation.subquery(node.query, partial(selected_values, node.key))
        if values is None:
            return FALSE
        if reading.is_whole and reading.kind in SINGLE_KINDS:
            equal = f"(NULLIF({reading.json}, 'null'::jsonb) IN " + values + ")"
            if reading.kind != "Pointer":
                return equal
            return either([equal, f"(to_jsonb({reading.typed}) IN " + values + ")"])
        if reading.is_whole and reading.kind == "Relation":
            pointer = Sql(
                "jsonb_build_object('__type', 'Pointer', 'className', %s::text,"
                " 'objectId', r.related_id)",
                (reading.target_class,),
            )
            return compilation.members(node.path[0], "(" + pointer + " IN " + values + ")")
        # Null is no value, so it equals none, also if the sub-query has one.
        return either(
            each_candidate(
                reading, lambda c: f"(NULLIF({c}, 'null'::jsonb) IN " + values + ")", depth
            )
            for depth in (0, 1)
        )


@sql_of(RelatedTo)
class RelatedToSql(OperatorSql[RelatedTo]):
    def condition(self, node: RelatedTo, compilation: Compilation) -> Sql:
        owner = compilation.scope.table(node.class_name)
        if owner is None:
            return FALSE
        table, rights = owner
        relation = table.schema.fields.get(node.key)
        if relation is None or relation.target_class != compilation.table.class_name:
            return FALSE  # ids are unique within a class only
        alias = f"s{next(compilation.names)}"
        visible = Compilation(table, alias, compilation.scope, compilation.names).compile(rights)
        return (
            Sql(
                f"({compilation.alias}.object_id IN (SELECT r.related_id FROM {RELATIONS} AS r"
                f" JOIN {table.relation} AS {alias} ON {alias}.object_id = r.owning_id"
                " WHERE r.class_id = %s AND r.key = %s AND r.owning_id = %s AND ",
                (table.class_id, node.key, node.object_id),
            )
            + visible
            + "))"
        )
