"""The SQL of operators on numbers."""

from __future__ import annotations

from typing import cast

from objects.core.pipeline.expressions import Call, Literal
from objects.core.pipeline.operators.numbers import (
    Add,
    Divide,
    Modulo,
    Multiply,
    Round,
    Rounding,
    Subtract,
)
from objects.sql.fragments import Sql
from objects.sql.pipeline.expressions import (
    NumericSql,
    OperatorSql,
    Source,
    number,
    sql_of,
    values,
)
from objects.sql.pipeline.jsonb import constant, joined, once, quotient
from objects.sql.pipeline.operators.dates import MINUS, PLUS


@sql_of(Add)
class AddSql(OperatorSql):
    def value(self, call: Call, source: Source) -> Sql:
        total = constant(0)
        for value in values(call.operands, source):
            total = once([total, value], PLUS)
        return total


@sql_of(Subtract)
class SubtractSql(OperatorSql):
    def value(self, call: Call, source: Source) -> Sql:
        return once(values(call.operands, source), MINUS)


@sql_of(Multiply)
class MultiplySql(NumericSql):
    def number(self, call: Call, source: Source) -> Sql:
        return "(" + joined((number(operand, source) for operand in call.operands), " * ") + ")"


@sql_of(Divide)
class DivideSql(NumericSql):
    def number(self, call: Call, source: Source) -> Sql:
        return once([number(operand, source) for operand in call.operands], quotient("a", "b"))


@sql_of(Modulo)
class ModuloSql(NumericSql):
    def number(self, call: Call, source: Source) -> Sql:
        operands = [number(operand, source) for operand in call.operands]
        return once(operands, "mod(a, NULLIF(b, 0))")


@sql_of(Rounding)
class RoundingSql(NumericSql):
    """The functions of PostgreSQL have the operators' names."""

    def number(self, call: Call, source: Source) -> Sql:
        return f"{call.name.removeprefix('$')}(" + number(call.operands[0], source) + ")"


@sql_of(Round)
class RoundSql(NumericSql):
    def number(self, call: Call, source: Source) -> Sql:
        digits = cast(Literal, call.operands[1]).value
        scaled = number(call.operands[0], source) + Sql(" * %s::numeric", (f"1e{digits}",))
        rounded = (
            "(SELECT CASE WHEN s.a - s.f > 0.5 OR (s.a - s.f = 0.5 AND mod(s.f, 2) <> 0)"
            " THEN s.f + 1 ELSE s.f END"
            + Sql(" * %s::numeric", (f"1e{-cast(int, digits)}",))
            + " FROM (SELECT q.a, floor(q.a) AS f FROM (SELECT "
        )
        return rounded + scaled + " AS a OFFSET 0) AS q OFFSET 0) AS s)"
