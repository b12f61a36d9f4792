"""SQL of constraints on one field and one value."""

from __future__ import annotations

from backend.kernel.errors import InvalidJSON
from objects.core.query.operators.comparison import Compare, Equals, Exists, NotEquals
from objects.core.values import kind
from objects.sql import jsonpath
from objects.sql.fields import SINGLE_KINDS
from objects.sql.fragments import FALSE, Sql, negation
from objects.sql.operators.compilation import Compilation, OperatorSql, sql_of
from objects.sql.values import comparison, has_element, led_equality, or_null, whole_value


@sql_of(Equals)
class EqualsSql(OperatorSql[Equals]):
    def condition(self, node: Equals, compilation: Compilation) -> Sql:
        return compilation.any_value(node.path, (node.value,))

    def required(self, node: Equals, compilation: Compilation) -> Sql:
        is_led = len(node.path) == 1 and node.path[0] in compilation.led
        if is_led and node.value is not None:
            equality = led_equality(compilation.read(node.path), node.value)
            if equality is not None:
                return equality
        values = (node.value,)
        condition = compilation.computed_condition(node.path, values)
        return compilation.any_value(node.path, values) if condition is None else condition


@sql_of(NotEquals)
class NotEqualsSql(OperatorSql[NotEquals]):
    def condition(self, node: NotEquals, compilation: Compilation) -> Sql:
        return negation(compilation.any_value(node.path, (node.value,)))


@sql_of(Compare)
class CompareSql(OperatorSql[Compare]):
    def condition(self, node: Compare, compilation: Compilation) -> Sql:
        reading = compilation.read(node.path)
        if node.is_relative and reading.is_whole and reading.kind not in ("Date", None):
            raise InvalidJSON("$relativeTime can only be used with Date field")
        if reading.is_whole and reading.kind in SINGLE_KINDS:
            if kind(node.value) != reading.kind or reading.typed is None:
                return FALSE
            return comparison(reading, node.op, node.value)
        condition = jsonpath.compares(node.op, node.value)
        return has_element(reading, condition)


@sql_of(Exists)
class ExistsSql(OperatorSql[Exists]):
    def condition(self, node: Exists, compilation: Compilation) -> Sql:
        reading = compilation.read(node.path)
        if reading.is_whole and reading.kind == "Relation":
            exists = compilation.members(node.path[0])
        elif reading.is_whole and reading.kind in SINGLE_KINDS:
            return Sql(f"({or_null(reading)} IS {'NOT ' if node.exists else ''}NULL)")
        elif reading.is_whole or reading.is_exact:
            value = whole_value(reading)
            exists = "(NULLIF(" + value + ", 'null'::jsonb) IS NOT NULL)"
        else:
            path = jsonpath.not_null(reading.steps)
            exists = Sql(f"({reading.base} @? %s::jsonpath)", (path,))
        return exists if node.exists else negation(exists)
