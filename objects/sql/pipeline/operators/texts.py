"""The SQL of operators on texts."""

from __future__ import annotations

from objects.core.pipeline.expressions import Call
from objects.core.pipeline.operators.texts import Case, Concat, Substring, TextLength
from objects.sql.fragments import Sql
from objects.sql.pipeline.expressions import (
    NumericSql,
    Source,
    TextSql,
    expression,
    number,
    sql_of,
    text,
    values,
)
from objects.sql.pipeline.jsonb import balanced, once

_FUNCTIONS = {"$toLower": "lower", "$toUpper": "upper"}


@sql_of(Concat)
class ConcatSql(TextSql):
    def text(self, call: Call, source: Source) -> Sql:
        texts = [text(operand, source) for operand in call.operands]
        return balanced(texts, lambda a, b: "(" + a + " || " + b + ")")


@sql_of(Case)
class CaseSql(TextSql):
    def text(self, call: Call, source: Source) -> Sql:
        return once(
            values(call.operands, source),
            "CASE WHEN a IS NULL OR a = 'null'::jsonb THEN '' WHEN jsonb_typeof(a) = 'string'"
            f" THEN {_FUNCTIONS[call.name]}((a #>> '{{}}') COLLATE \"C\") END",
        )


@sql_of(Substring)
class SubstringSql(TextSql):
    def text(self, call: Call, source: Source) -> Sql:
        full_text, *bounds = call.operands
        start, length = "LEAST(b, 1000000000)::int + 1", "LEAST(c, 1000000000)::int"
        return once(
            [expression(full_text, source), *(number(operand, source) for operand in bounds)],
            "CASE WHEN a IS NULL OR a = 'null'::jsonb THEN ''"
            " WHEN jsonb_typeof(a) = 'string' AND b >= 0 AND trunc(b) = b AND trunc(c) = c THEN"
            f" CASE WHEN c < 0 THEN substr(a #>> '{{}}', {start})"
            f" ELSE substr(a #>> '{{}}', {start}, {length}) END END",
        )


@sql_of(TextLength)
class TextLengthSql(NumericSql):
    def number(self, call: Call, source: Source) -> Sql:
        return "char_length(" + text(call.operands[0], source) + ")::numeric"
