"""Expressions of the aggregation pipeline in SQL, tested against ``tests.oracles.expressions``.

A value is jsonb; SQL's NULL is a missing one. Nothing of what a client wrote is in the text. An
operand is written once and named where an operator looks at it twice, so that the text grows
with the expression and not with its depth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol, cast

from objects.core.pipeline.expressions import (
    DATE_PARTS,
    Call,
    Document,
    Expression,
    Field,
    Items,
    Literal,
    Path,
    format_parts,
)
from objects.core.values import FieldKind
from objects.sql.fragments import Sql, both, either, json_text
from objects.sql.pipeline.dates import FORMATS, MINUS, PARTS, PLUS, is_date
from objects.sql.pipeline.jsonb import (
    constant,
    joined,
    object_of,
    once,
    ordered_text,
    quotient,
    rank,
    text_parameter,
)


class Source(Protocol):
    """The rows whose documents expressions are about."""

    def field(self, path: Path) -> Sql:
        """Return the value at a path; of no path, the whole document."""

    def typed(self, path: Path, kind: FieldKind) -> Sql | None:
        """Return a field's value in the SQL type of this kind; None if its kind isn't certain."""


# --- expressions ---------------------------------------------------------------------------------


def expression(node: Expression, source: Source) -> Sql:
    """Return the value of an expression as jsonb; NULL if it is missing."""
    if isinstance(node, Literal):
        return constant(node.value)
    if isinstance(node, Field):
        return source.field(node.path)
    if isinstance(node, Items):
        return _items([expression(item, source) for item in node.items])
    if isinstance(node, Document):
        return object_of((name, expression(part, source)) for name, part in node.fields)
    if node.name in _NUMERIC or node.name in DATE_PARTS:
        return number_json(number(node, source))
    if node.name in _TEXTUAL:
        return or_null(_TEXTUAL[node.name](node.operands, source))
    if node.name in _LOGICAL:
        return or_null(_LOGICAL[node.name](node.operands, source))
    return _GENERAL[node.name](node.operands, source)


def number_json(value: Sql | str) -> Sql:
    """A numeric as jsonb; NULL is null."""
    return or_null("trim_scale(" + (Sql(value) if isinstance(value, str) else value) + ")")


def or_null(value: Sql) -> Sql:
    """A value of SQL as jsonb; NULL is null."""
    return "COALESCE(to_jsonb(" + value + "), 'null'::jsonb)"


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
        if node.name in _NUMERIC:
            return _NUMERIC[node.name](node.operands, source)
        if node.name in DATE_PARTS:
            return once([_moment(node.operands[0], source)], PARTS[node.name])
    value_of = expression(node, source)
    return once([value_of], "CASE WHEN jsonb_typeof(a) = 'number' THEN a::numeric END")


def condition(node: Expression, source: Source) -> Sql:
    """Return whether the value counts as true; never NULL."""
    if isinstance(node, Call) and node.name in _LOGICAL:
        return _LOGICAL[node.name](node.operands, source)
    value = expression(node, source)
    return "COALESCE(" + value + " NOT IN ('null'::jsonb, 'false'::jsonb, '0'::jsonb), FALSE)"


Operands = tuple[Expression, ...]


def _values(operands: Operands, source: Source) -> list[Sql]:
    return [expression(operand, source) for operand in operands]


def _items(values: list[Sql]) -> Sql:
    rows = [f"({index}, " + value + ")" for index, value in enumerate(values)]
    return (
        "(SELECT jsonb_agg(COALESCE(f.v, 'null'::jsonb) ORDER BY f.i) FROM (VALUES "
        + joined(rows, ", ")
        + ") AS f(i, v))"
    )


# --- numbers and dates ---------------------------------------------------------------------------


def _add(operands: Operands, source: Source) -> Sql:
    total = constant(0)
    for value in _values(operands, source):
        total = once([total, value], PLUS)
    return total


def _multiply(operands: Operands, source: Source) -> Sql:
    return "(" + joined((number(operand, source) for operand in operands), " * ") + ")"


def _divide(operands: Operands, source: Source) -> Sql:
    return once([number(operand, source) for operand in operands], quotient("a", "b"))


def _modulo(operands: Operands, source: Source) -> Sql:
    return once([number(operand, source) for operand in operands], "mod(a, NULLIF(b, 0))")


def _function(name: str, operands: Operands, source: Source) -> Sql:
    return f"{name}(" + number(operands[0], source) + ")"


def _round(operands: Operands, source: Source) -> Sql:
    digits = cast(Literal, operands[1]).value
    scaled = number(operands[0], source) + Sql(" * %s::numeric", (f"1e{digits}",))
    rounded = (
        "(SELECT CASE WHEN s.a - s.f > 0.5 OR (s.a - s.f = 0.5 AND mod(s.f, 2) <> 0)"
        " THEN s.f + 1 ELSE s.f END"
        + Sql(" * %s::numeric", (f"1e{-cast(int, digits)}",))
        + " FROM (SELECT q.a, floor(q.a) AS f FROM (SELECT "
    )
    return rounded + scaled + " AS a OFFSET 0) AS q OFFSET 0) AS s)"


def _moment(node: Expression, source: Source) -> Sql:
    """Return the value as a timestamp in UTC; NULL if it isn't a Date."""
    if isinstance(node, Field):
        typed = source.typed(node.path, "Date")
        if typed is not None:
            return "((" + typed + ")::timestamptz AT TIME ZONE 'UTC')"
    moment = "(a->>'iso')::timestamptz AT TIME ZONE 'UTC'"
    return once([expression(node, source)], f"CASE WHEN {is_date('a')} THEN {moment} END")


def _date_to_string(operands: Operands, source: Source) -> Sql:
    parts = [
        Sql(FORMATS[part]) if part in FORMATS else text_parameter("%" if part == "%%" else part)
        for part in format_parts(cast(str, cast(Literal, operands[0]).value))
    ]
    body = "CASE WHEN a IS NOT NULL THEN " + joined([text_parameter(""), *parts], " || ") + " END"
    return once([_moment(operands[1], source)], body)


# --- texts ---------------------------------------------------------------------------------------


def _text(node: Expression, source: Source) -> Sql:
    if isinstance(node, Literal) and isinstance(node.value, str):
        return text_parameter(node.value)
    if isinstance(node, Field):
        typed = source.typed(node.path, "String")
        if typed is not None:
            return typed
    return once(
        [expression(node, source)], "CASE WHEN jsonb_typeof(a) = 'string' THEN a #>> '{}' END"
    )


def _concat(operands: Operands, source: Source) -> Sql:
    return "(" + joined((_text(operand, source) for operand in operands), " || ") + ")"


def _cased(function: str, operands: Operands, source: Source) -> Sql:
    return once(
        _values(operands, source),
        "CASE WHEN a IS NULL OR a = 'null'::jsonb THEN '' WHEN jsonb_typeof(a) = 'string'"
        f" THEN {function}((a #>> '{{}}') COLLATE \"C\") END",
    )


def _substring(operands: Operands, source: Source) -> Sql:
    text, *bounds = operands
    start, length = "LEAST(b, 1000000000)::int + 1", "LEAST(c, 1000000000)::int"
    return once(
        [expression(text, source), *(number(operand, source) for operand in bounds)],
        "CASE WHEN a IS NULL OR a = 'null'::jsonb THEN ''"
        " WHEN jsonb_typeof(a) = 'string' AND b >= 0 AND trunc(b) = b AND trunc(c) = c THEN"
        f" CASE WHEN c < 0 THEN substr(a #>> '{{}}', {start})"
        f" ELSE substr(a #>> '{{}}', {start}, {length}) END END",
    )


def _text_length(operands: Operands, source: Source) -> Sql:
    return "char_length(" + _text(operands[0], source) + ")::numeric"


# --- comparison and logic ------------------------------------------------------------------------

_COMPARED: Final = (
    "CASE WHEN s.ra <> s.rb THEN sign(s.ra - s.rb)"
    " WHEN s.ra = 1 THEN sign(s.a::numeric - s.b::numeric)"
    " WHEN s.ra IN (2, 6) THEN CASE WHEN s.ta = s.tb THEN 0 WHEN s.ta < s.tb THEN -1 ELSE 1 END"
    " WHEN s.ra IN (3, 4) THEN CASE WHEN s.a = s.b THEN 0 WHEN s.a < s.b THEN -1 ELSE 1 END"
    " ELSE 0 END"
)


def _comparison(operands: Operands, source: Source) -> Sql:
    """-1, 0 or 1."""
    columns = ", ".join(
        f'q.{n}, {rank(f"q.{n}")} AS r{n}, ({ordered_text(f"q.{n}")}) COLLATE "C" AS t{n}'
        for n in "ab"
    )
    inner = once(_values(operands, source), columns)
    return f"(SELECT {_COMPARED} FROM " + inner + " AS s)"


def _compares(test: str, operands: Operands, source: Source) -> Sql:
    return "(" + _comparison(operands, source) + f" {test} 0)"


def _equal(operands: Operands, source: Source) -> Sql:
    return "(" + joined(_values(operands, source), " IS NOT DISTINCT FROM ") + ")"


def _not_equal(operands: Operands, source: Source) -> Sql:
    return "(" + joined(_values(operands, source), " IS DISTINCT FROM ") + ")"


def _conditions(operands: Operands, source: Source) -> list[Sql]:
    return [condition(operand, source) for operand in operands]


def _is_array(operands: Operands, source: Source) -> Sql:
    return "COALESCE(jsonb_typeof(" + expression(operands[0], source) + ") = 'array', FALSE)"


def _switch(operands: Operands, source: Source) -> Sql:
    text = Sql("(CASE")
    for case, then in zip(operands[:-1:2], operands[1:-1:2], strict=True):
        text = text + " WHEN " + condition(case, source) + " THEN " + expression(then, source)
    return text + " ELSE " + expression(operands[-1], source) + " END)"


def _if_null(operands: Operands, source: Source) -> Sql:
    *values, last = _values(operands, source)
    non_null = ["NULLIF(" + value + ", 'null'::jsonb)" for value in values]
    return "COALESCE(" + joined([*non_null, last], ", ") + ")"


# --- arrays --------------------------------------------------------------------------------------


def _in(operands: Operands, source: Source) -> Sql:
    return once(
        _values(operands, source),
        "CASE WHEN jsonb_typeof(b) = 'array' THEN to_jsonb(EXISTS"
        " (SELECT 1 FROM jsonb_array_elements(b) AS e(v) WHERE e.v = a)) ELSE 'null'::jsonb END",
    )


def _size(operands: Operands, source: Source) -> Sql:
    length = "CASE WHEN jsonb_typeof(a) = 'array' THEN jsonb_array_length(a)::numeric END"
    return once(_values(operands, source), length)


_ELEMENT: Final = (
    "CASE WHEN jsonb_typeof(a) = 'array' AND trunc(b) = b THEN"
    " CASE WHEN abs(b) < 2147483647 THEN a -> b::int END ELSE 'null'::jsonb END"
)


def _element(operands: Operands, source: Source) -> Sql:
    array, position = operands
    return once([expression(array, source), number(position, source)], _ELEMENT)


def _element_at(position: int, operands: Operands, source: Source) -> Sql:
    return _element((operands[0], Literal(position)), source)


def _concat_arrays(operands: Operands, source: Source) -> Sql:
    total = constant([])
    for value in _values(operands, source):
        total = once(
            [total, value],
            "CASE WHEN jsonb_typeof(a) = 'array' AND jsonb_typeof(b) = 'array' THEN a || b"
            " ELSE 'null'::jsonb END",
        )
    return total


_Compile = Callable[[Operands, Source], Sql]

_NUMERIC: Final[Mapping[str, _Compile]] = {
    "$multiply": _multiply,
    "$divide": _divide,
    "$mod": _modulo,
    "$abs": partial(_function, "abs"),
    "$ceil": partial(_function, "ceil"),
    "$floor": partial(_function, "floor"),
    "$round": _round,
    "$strLenCP": _text_length,
    "$cmp": _comparison,
    "$size": _size,
}
_TEXTUAL: Final[Mapping[str, _Compile]] = {
    "$concat": _concat,
    "$toLower": partial(_cased, "lower"),
    "$toUpper": partial(_cased, "upper"),
    "$substr": _substring,
    "$substrCP": _substring,
    "$dateToString": _date_to_string,
}
_LOGICAL: Final[Mapping[str, _Compile]] = {
    "$eq": _equal,
    "$ne": _not_equal,
    "$gt": partial(_compares, ">"),
    "$gte": partial(_compares, ">="),
    "$lt": partial(_compares, "<"),
    "$lte": partial(_compares, "<="),
    "$and": lambda operands, source: both(_conditions(operands, source)),
    "$or": lambda operands, source: either(_conditions(operands, source)),
    "$not": lambda operands, source: "(NOT " + condition(operands[0], source) + ")",
    "$isArray": _is_array,
}
_GENERAL: Final[Mapping[str, _Compile]] = {
    "$add": _add,
    "$subtract": lambda operands, source: once(_values(operands, source), MINUS),
    "$cond": _switch,
    "$switch": _switch,
    "$ifNull": _if_null,
    "$in": _in,
    "$arrayElemAt": _element,
    "$first": partial(_element_at, 0),
    "$last": partial(_element_at, -1),
    "$concatArrays": _concat_arrays,
}
