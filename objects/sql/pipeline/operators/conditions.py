"""The SQL of comparisons, logic and choices."""

from __future__ import annotations

from typing import Final

from objects.core.pipeline.expressions import Call
from objects.core.pipeline.operators.conditions import (
    Compare,
    Comparison,
    Condition,
    Equality,
    IfNull,
    In,
    Logic,
    Not,
    Switch,
)
from objects.sql.fragments import Sql, both, either
from objects.sql.pipeline.expressions import (
    LogicSql,
    NumericSql,
    OperatorSql,
    Source,
    condition,
    expression,
    sql_of,
    values,
)
from objects.sql.pipeline.jsonb import joined, once, ordered_text, rank

_EQUALITIES: Final = {"$eq": " IS NOT DISTINCT FROM ", "$ne": " IS DISTINCT FROM "}
_TESTS: Final = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_COMPARED: Final = (
    "CASE WHEN s.ra <> s.rb THEN sign(s.ra - s.rb)"
    " WHEN s.ra = 1 THEN sign(s.a::numeric - s.b::numeric)"
    " WHEN s.ra IN (2, 6) THEN CASE WHEN s.ta = s.tb THEN 0 WHEN s.ta < s.tb THEN -1 ELSE 1 END"
    " WHEN s.ra IN (3, 4) THEN CASE WHEN s.a = s.b THEN 0 WHEN s.a < s.b THEN -1 ELSE 1 END"
    " ELSE 0 END"
)


@sql_of(Equality)
class EqualitySql(LogicSql):
    def condition(self, call: Call, source: Source) -> Sql:
        return "(" + joined(values(call.operands, source), _EQUALITIES[call.name]) + ")"


@sql_of(Comparison)
class ComparisonSql(LogicSql):
    def condition(self, call: Call, source: Source) -> Sql:
        return "(" + _compared(call, source) + f" {_TESTS[call.name]} 0)"


@sql_of(Compare)
class CompareSql(NumericSql):
    def number(self, call: Call, source: Source) -> Sql:
        return _compared(call, source)


def _compared(call: Call, source: Source) -> Sql:
    """Return -1, 0 or 1."""
    columns = ", ".join(
        f'q.{n}, {rank(f"q.{n}")} AS r{n}, ({ordered_text(f"q.{n}")}) COLLATE "C" AS t{n}'
        for n in "ab"
    )
    inner = once(values(call.operands, source), columns)
    return f"(SELECT {_COMPARED} FROM " + inner + " AS s)"


@sql_of(Logic)
class LogicOperatorSql(LogicSql):
    def condition(self, call: Call, source: Source) -> Sql:
        conditions = [condition(operand, source) for operand in call.operands]
        return both(conditions) if call.name == "$and" else either(conditions)


@sql_of(Not)
class NotSql(LogicSql):
    def condition(self, call: Call, source: Source) -> Sql:
        return "(NOT " + condition(call.operands[0], source) + ")"


@sql_of(In)
class InSql(OperatorSql):
    def value(self, call: Call, source: Source) -> Sql:
        return once(
            values(call.operands, source),
            "CASE WHEN jsonb_typeof(b) = 'array' THEN to_jsonb(EXISTS"
            " (SELECT 1 FROM jsonb_array_elements(b) AS e(v) WHERE e.v = a))"
            " ELSE 'null'::jsonb END",
        )


@sql_of(Condition)
@sql_of(Switch)
class SwitchSql(OperatorSql):
    """The operands are case and value in turn, and the value of no case."""

    def value(self, call: Call, source: Source) -> Sql:
        *cases, default = call.operands
        text = Sql("(CASE")
        for case, then in zip(cases[::2], cases[1::2], strict=True):
            text = text + " WHEN " + condition(case, source) + " THEN " + expression(then, source)
        return text + " ELSE " + expression(default, source) + " END)"


@sql_of(IfNull)
class IfNullSql(OperatorSql):
    def value(self, call: Call, source: Source) -> Sql:
        *operands, last = values(call.operands, source)
        non_null = ["NULLIF(" + value + ", 'null'::jsonb)" for value in operands]
        return "COALESCE(" + joined([*non_null, last], ", ") + ")"
