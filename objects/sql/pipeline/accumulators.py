"""The SQL of accumulators: one class each, registered by ``sql_of``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from objects.core.pipeline.accumulators import (
    Accumulation,
    Accumulator,
    AddToSet,
    Average,
    End,
    Extreme,
    Push,
    Sum,
)
from objects.core.pipeline.expressions import Expression, Field, Literal
from objects.sql.fragments import Sql
from objects.sql.pipeline.expressions import Source, expression, number, number_json
from objects.sql.pipeline.jsonb import order_terms, quotient
from objects.sql.pipeline.rows import Order
from objects.sql.pipeline.sizes import guarded, is_array_beyond, is_within
from objects.sql.registration import register


class Columns(NamedTuple):
    """Where the texts of an accumulator find what they need."""

    value: str
    """The column with the value of a document."""
    group: str
    """The column with what is made of a group's values."""
    order: Sequence[Order]
    """The order of the documents, which stand under the alias ``g``."""
    limit: int
    """The most bytes that groups may collect in all; ``g.size`` is what they have up to a row."""


class Accumulated(NamedTuple):
    """What to take of a document, to make of a group's values, and to put into its document."""

    value: Sql
    group: str
    document: str


class AccumulatorSql:
    """The SQL of one accumulator. Instances have no state."""

    collects = False
    """Whether it holds more than one value of a group in memory."""

    puts_together = True
    """Whether it makes jsonb of the values while it collects them."""

    def size(self, size: str) -> str:
        """Return what a value of this size adds to ``g.size``."""
        return size

    def accumulated(self, node: Accumulator, source: Source, columns: Columns) -> Accumulated:
        """Return the texts for one accumulator of a group."""
        raise NotImplementedError


READINGS: Final[dict[str, AccumulatorSql]] = {}
"""The SQL of each accumulator by its names; filled by ``sql_of``."""

R = TypeVar("R", bound=AccumulatorSql)


def sql_of(accumulation: type[Accumulation]) -> Callable[[type[R]], type[R]]:
    """Register the SQL of an accumulator. Raises ``TypeError`` for one that has its SQL."""
    return register(READINGS, accumulation.names)


@sql_of(Sum)
class SumSql(AccumulatorSql):
    def accumulated(self, node: Accumulator, source: Source, columns: Columns) -> Accumulated:
        total = f"COALESCE(to_jsonb(trim_scale(sum({columns.value}))), '0'::jsonb)"
        return Accumulated(number(node.operand, source), total, columns.group)


@sql_of(Average)
class AverageSql(AccumulatorSql):
    def accumulated(self, node: Accumulator, source: Source, columns: Columns) -> Accumulated:
        mean = quotient(f"sum({columns.value})", f"count({columns.value})::numeric")
        return Accumulated(number(node.operand, source), number_json(mean).text, columns.group)


@sql_of(Extreme)
class ExtremeSql(AccumulatorSql):
    def accumulated(self, node: Accumulator, source: Source, columns: Columns) -> Accumulated:
        function = node.name.removeprefix("$")
        return Accumulated(*_extreme(function, node.operand, source, columns.value), columns.group)


@sql_of(End)
class EndSql(AccumulatorSql):
    def accumulated(self, node: Accumulator, source: Source, columns: Columns) -> Accumulated:
        # An array of one, for any_value skips NULL.
        by = _order_by(columns, reverse=node.name == "$last")
        first = f"COALESCE((any_value(ARRAY[{columns.value}]{by}))[1], 'null'::jsonb)"
        return Accumulated(expression(node.operand, source), first, columns.group)


@sql_of(Push)
class PushSql(AccumulatorSql):
    collects = True

    def accumulated(self, node: Accumulator, source: Source, columns: Columns) -> Accumulated:
        is_present = is_within("g.size", columns.limit, f"{columns.value} IS NOT NULL")
        present = f" FILTER (WHERE {is_present})"
        array = f"jsonb_agg({columns.value}{_order_by(columns)}){present}"
        pushed = f"COALESCE({array}, '[]'::jsonb)"
        return Accumulated(expression(node.operand, source), pushed, columns.group)


@sql_of(AddToSet)
class AddToSetSql(AccumulatorSql):
    """Duplicates aren't held in memory, so each value counts for an eighth of its size."""

    collects = True
    puts_together = False

    def size(self, size: str) -> str:
        return f"({size}) / 8"

    def accumulated(self, node: Accumulator, source: Source, columns: Columns) -> Accumulated:
        value = columns.value
        is_present = is_within("g.size", columns.limit, f"{value} IS NOT NULL")
        distinct = f"array_agg(DISTINCT {value}) FILTER (WHERE {is_present})"
        terms = ", ".join(f"{term} ASC NULLS FIRST" for term in order_terms("e.v"))
        array = (
            f"(SELECT COALESCE(jsonb_agg(e.v ORDER BY {terms}), '[]'::jsonb)"
            f" FROM unnest({columns.group}) AS e(v))"
        )
        size = f"pg_column_size({columns.group})"
        checked = guarded(
            Sql(array), is_array_beyond(columns.group, columns.limit), size, "jsonb"
        ).text
        return Accumulated(expression(node.operand, source), distinct, checked)


def _order_by(columns: Columns, *, reverse: bool = False) -> str:
    terms = ", ".join(key.term("g", reverse=reverse) for key in columns.order)
    return f" ORDER BY {terms}" if terms else ""


def _extreme(function: str, operand: Expression, source: Source, value: str) -> tuple[Sql, str]:
    """Return the least or greatest value, by a native function where the kind is known."""
    if _is_number(operand) or _is_known(operand, source, "Number"):
        return number(operand, source), number_json(f"{function}({value})").text
    typed = source.typed(operand.path, "String") if isinstance(operand, Field) else None
    if typed is not None:
        return typed, f"COALESCE(to_jsonb({function}({value})), 'null'::jsonb)"
    if _is_known(operand, source, "Date"):
        iso = "((" + expression(operand, source) + """ ->> 'iso') COLLATE "C")"""
        extreme = f"{function}({value})"
        date = f"jsonb_build_object('__type', 'Date', 'iso', {extreme})"
        return iso, f"CASE WHEN {extreme} IS NULL THEN 'null'::jsonb ELSE {date} END"
    direction = "ASC NULLS FIRST" if function == "min" else "DESC NULLS LAST"
    terms = ", ".join(f"{term} {direction}" for term in order_terms(value))
    present = f"FILTER (WHERE {value} IS NOT NULL AND {value} <> 'null'::jsonb)"
    first = f"any_value({value} ORDER BY {terms}) {present}"
    return expression(operand, source), f"COALESCE({first}, 'null'::jsonb)"


def _is_number(operand: Expression) -> bool:
    if not isinstance(operand, Literal) or isinstance(operand.value, bool):
        return False
    return isinstance(operand.value, int | float)


def _is_known(operand: Expression, source: Source, kind: str) -> bool:
    return (
        isinstance(operand, Field)
        and bool(operand.path)
        and source.typed(operand.path, kind) is not None  # type: ignore[arg-type]
    )
