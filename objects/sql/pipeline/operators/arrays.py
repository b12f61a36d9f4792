"""The SQL of operators on arrays."""

from __future__ import annotations

from typing import Final

from objects.core.pipeline.expressions import Call, Expression, Literal
from objects.core.pipeline.operators.arrays import ConcatArrays, ElementAt, End, IsArray, Size
from objects.sql.fragments import Sql
from objects.sql.pipeline.expressions import (
    LogicSql,
    NumericSql,
    OperatorSql,
    Source,
    expression,
    number,
    sql_of,
    values,
)
from objects.sql.pipeline.jsonb import balanced, once

_ELEMENT: Final = (
    "CASE WHEN jsonb_typeof(a) = 'array' AND trunc(b) = b THEN"
    " CASE WHEN abs(b) < 2147483647 THEN a -> b::int END ELSE 'null'::jsonb END"
)
_ARRAY_OR_NULL: Final = "CASE WHEN jsonb_typeof(a) = 'array' THEN a ELSE 'null'::jsonb END"
_BOTH_ARRAYS: Final = (
    "CASE WHEN jsonb_typeof(a) = 'array' AND jsonb_typeof(b) = 'array' THEN a || b"
    " ELSE 'null'::jsonb END"
)
_POSITIONS: Final = {"$first": 0, "$last": -1}


@sql_of(Size)
class SizeSql(NumericSql):
    def number(self, call: Call, source: Source) -> Sql:
        length = "CASE WHEN jsonb_typeof(a) = 'array' THEN jsonb_array_length(a)::numeric END"
        return once(values(call.operands, source), length)


@sql_of(IsArray)
class IsArraySql(LogicSql):
    def condition(self, call: Call, source: Source) -> Sql:
        value = expression(call.operands[0], source)
        return "COALESCE(jsonb_typeof(" + value + ") = 'array', FALSE)"


@sql_of(ElementAt)
class ElementAtSql(OperatorSql):
    def value(self, call: Call, source: Source) -> Sql:
        array, position = call.operands
        return _element(array, position, source)


@sql_of(End)
class EndSql(OperatorSql):
    def value(self, call: Call, source: Source) -> Sql:
        return _element(call.operands[0], Literal(_POSITIONS[call.name]), source)


def _element(array: Expression, position: Expression, source: Source) -> Sql:
    return once([expression(array, source), number(position, source)], _ELEMENT)


@sql_of(ConcatArrays)
class ConcatArraysSql(OperatorSql):
    def value(self, call: Call, source: Source) -> Sql:
        arrays = [once([value], _ARRAY_OR_NULL) for value in values(call.operands, source)]
        return balanced(arrays, lambda a, b: once([a, b], _BOTH_ARRAYS))
