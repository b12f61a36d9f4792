"""Expressions of the aggregation pipeline in SQL, tested against ``tests.oracles.expressions``.

A value is jsonb; SQL's NULL is a missing one. Nothing of what a client wrote is in the text. An
operand is written once and named where an operator looks at it twice, so that the text grows
with the expression and not with its depth.

The SQL of an operator is one class in ``objects.sql.pipeline.operators``, derived from
``OperatorSql`` and registered by ``sql_of``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from objects.core.pipeline.expressions import (
    Call,
    Document,
    Expression,
    Field,
    Items,
    Literal,
    Operator,
)
from objects.core.pipeline.paths import Path
from objects.core.values import FieldKind
from objects.sql.fragments import Sql, json_text
from objects.sql.pipeline.jsonb import constant, joined, object_of, once, text_parameter
from objects.sql.registration import register


class Source(Protocol):
    """The rows whose documents expressions are about."""

    def field(self, path: Path) -> Sql:
        """Return the value at a path; of no path, the whole document."""

    def typed(self, path: Path, kind: FieldKind) -> Sql | None:
        """Return a field's value in the SQL type of this kind; None if its kind isn't certain."""


class OperatorSql:
    """The SQL of one operator, whose value is jsonb. Instances have no state."""

    def value(self, call: Call, source: Source) -> Sql:
        """Return the value as jsonb; NULL if it is missing."""
        raise NotImplementedError

    def number(self, call: Call, source: Source) -> Sql:
        """Return the value as numeric; NULL if it isn't a number."""
        return once(
            [self.value(call, source)], "CASE WHEN jsonb_typeof(a) = 'number' THEN a::numeric END"
        )

    def condition(self, call: Call, source: Source) -> Sql:
        """Return whether the value counts as true; never NULL."""
        return _is_true(self.value(call, source))


class NumericSql(OperatorSql):
    """The SQL of an operator whose value is a number or null: ``number``."""

    def value(self, call: Call, source: Source) -> Sql:
        return number_json(self.number(call, source))

    def number(self, call: Call, source: Source) -> Sql:
        raise NotImplementedError


class TextSql(OperatorSql):
    """The SQL of an operator whose value is a text or null: ``text``."""

    def value(self, call: Call, source: Source) -> Sql:
        return or_null(self.text(call, source))

    def text(self, call: Call, source: Source) -> Sql:
        """Return the value as text; NULL if it is null."""
        raise NotImplementedError


class LogicSql(OperatorSql):
    """The SQL of an operator whose value is true or false: ``condition``."""

    def value(self, call: Call, source: Source) -> Sql:
        return or_null(self.condition(call, source))

    def condition(self, call: Call, source: Source) -> Sql:
        raise NotImplementedError


READINGS: Final[dict[str, OperatorSql]] = {}
"""The SQL of each operator by its names; filled by ``sql_of``."""

R = TypeVar("R", bound=OperatorSql)


def sql_of(operator: type[Operator]) -> Callable[[type[R]], type[R]]:
    """Register the SQL of an operator. Raises ``TypeError`` for one that has its SQL."""
    return register(READINGS, operator.names)


def expression(node: Expression, source: Source) -> Sql:
    """Return the value of an expression as jsonb; NULL if it is missing."""
    if isinstance(node, Literal):
        return constant(node.value)
    if isinstance(node, Field):
        return source.field(node.path)
    if isinstance(node, Items):
        return _items(values(node.items, source))
    if isinstance(node, Document):
        return object_of((name, expression(part, source)) for name, part in node.fields)
    return READINGS[node.name].value(node, source)


def values(operands: Sequence[Expression], source: Source) -> list[Sql]:
    """Return the values of operands as jsonb."""
    return [expression(operand, source) for operand in operands]


def number(node: Expression, source: Source) -> Sql:
    """Return the value as numeric; NULL if it isn't a number."""
    if isinstance(node, Literal):
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return Sql("NULL::numeric")
        return Sql("%s::numeric", (json_text(value),))
    if isinstance(node, Field):
        typed = source.typed(node.path, "Number")
        if typed is not None:
            return "(" + typed + ")::numeric"
    if isinstance(node, Call):
        return READINGS[node.name].number(node, source)
    value_of = expression(node, source)
    return once([value_of], "CASE WHEN jsonb_typeof(a) = 'number' THEN a::numeric END")


def text(node: Expression, source: Source) -> Sql:
    """Return the value as text; NULL if it isn't a text."""
    if isinstance(node, Literal) and isinstance(node.value, str):
        return text_parameter(node.value)
    if isinstance(node, Field):
        typed = source.typed(node.path, "String")
        if typed is not None:
            return typed
    return once(
        [expression(node, source)], "CASE WHEN jsonb_typeof(a) = 'string' THEN a #>> '{}' END"
    )


def condition(node: Expression, source: Source) -> Sql:
    """Return whether the value counts as true; never NULL."""
    if isinstance(node, Call):
        return READINGS[node.name].condition(node, source)
    return _is_true(expression(node, source))


def number_json(value: Sql | str) -> Sql:
    """Return a numeric as jsonb; NULL is null."""
    return or_null("trim_scale(" + (Sql(value) if isinstance(value, str) else value) + ")")


def or_null(value: Sql) -> Sql:
    """Return a value of SQL as jsonb; NULL is null."""
    return "COALESCE(to_jsonb(" + value + "), 'null'::jsonb)"


def _is_true(value: Sql) -> Sql:
    return "COALESCE(" + value + " NOT IN ('null'::jsonb, 'false'::jsonb, '0'::jsonb), FALSE)"


def _items(items: list[Sql]) -> Sql:
    rows = [f"({index}, " + value + ")" for index, value in enumerate(items)]
    return (
        "(SELECT jsonb_agg(COALESCE(f.v, 'null'::jsonb) ORDER BY f.i) FROM (VALUES "
        + joined(rows, ", ")
        + ") AS f(i, v))"
    )
