"""The SQL of operators on dates, and of arithmetic with dates.

The texts are about values that they name ``a`` and ``b`` (see ``jsonb.once``); the parts about a
timestamp in UTC that they name ``a``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from objects.core.pipeline.expressions import Call, Expression, Field, Literal
from objects.core.pipeline.operators.dates import DatePart, DateToString, format_parts
from objects.sql.fragments import Sql
from objects.sql.pipeline.expressions import NumericSql, Source, TextSql, expression, sql_of
from objects.sql.pipeline.jsonb import joined, once, text_parameter

BOTH_NUMBERS: Final = "jsonb_typeof(a) = 'number' AND jsonb_typeof(b) = 'number'"


def is_date(name: str) -> str:
    """Return the condition that a value is a Date."""
    return f"({name}->>'__type' = 'Date' AND pg_input_is_valid({name}->>'iso', 'timestamptz'))"


def _ms(name: str) -> str:
    return f"floor(extract(epoch FROM ({name}->>'iso')::timestamptz) * 1000)"


def _date(ms: str) -> str:
    """Milliseconds as a Date; null outside of the years 1 to 9999."""
    moment = f"timestamp 'epoch' + floor({ms})::float8 * interval '1 millisecond'"
    iso = f"""to_char({moment}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""
    return (
        f"CASE WHEN floor({ms}) BETWEEN -62135596800000 AND 253402300799999"
        f" THEN jsonb_build_object('__type', 'Date', 'iso', {iso}) ELSE 'null'::jsonb END"
    )


PLUS: Final = (
    f"CASE WHEN {BOTH_NUMBERS} THEN to_jsonb(trim_scale(a::numeric + b::numeric))"
    f" WHEN {is_date('a')} AND jsonb_typeof(b) = 'number' THEN {_date(_ms('a') + ' + b::numeric')}"
    f" WHEN {is_date('b')} AND jsonb_typeof(a) = 'number' THEN {_date(_ms('b') + ' + a::numeric')}"
    " ELSE 'null'::jsonb END"
)
MINUS: Final = (
    f"CASE WHEN {BOTH_NUMBERS} THEN to_jsonb(trim_scale(a::numeric - b::numeric))"
    f" WHEN {is_date('a')} AND {is_date('b')} THEN to_jsonb({_ms('a')} - {_ms('b')})"
    f" WHEN {is_date('a')} AND jsonb_typeof(b) = 'number' THEN {_date(_ms('a') + ' - b::numeric')}"
    " ELSE 'null'::jsonb END"
)

PARTS: Final[Mapping[str, str]] = {
    "$year": "extract(year FROM a)",
    "$month": "extract(month FROM a)",
    "$dayOfMonth": "extract(day FROM a)",
    "$dayOfWeek": "extract(dow FROM a) + 1",
    "$dayOfYear": "extract(doy FROM a)",
    "$hour": "extract(hour FROM a)",
    "$minute": "extract(minute FROM a)",
    "$second": "floor(extract(second FROM a))",
    "$millisecond": "mod(floor(extract(milliseconds FROM a)), 1000)",
    "$week": "floor((extract(doy FROM a) + 6 - extract(dow FROM a)) / 7)",
    "$isoWeek": "extract(week FROM a)",
    "$isoWeekYear": "extract(isoyear FROM a)",
    "$isoDayOfWeek": "extract(isodow FROM a)",
}
FORMATS: Final[Mapping[str, str]] = {
    "%Y": "to_char(a, 'YYYY')",
    "%m": "to_char(a, 'MM')",
    "%d": "to_char(a, 'DD')",
    "%H": "to_char(a, 'HH24')",
    "%M": "to_char(a, 'MI')",
    "%S": "to_char(a, 'SS')",
    "%L": "to_char(a, 'MS')",
    "%j": "to_char(a, 'DDD')",
    "%u": "to_char(a, 'ID')",
    "%U": f"lpad(({PARTS['$week']})::int::text, 2, '0')",
    "%V": "to_char(a, 'IW')",
    "%G": "to_char(a, 'IYYY')",
}


@sql_of(DatePart)
class DatePartSql(NumericSql):
    def number(self, call: Call, source: Source) -> Sql:
        return once([_moment(call.operands[0], source)], PARTS[call.name])


@sql_of(DateToString)
class DateToStringSql(TextSql):
    def text(self, call: Call, source: Source) -> Sql:
        pattern, moment = call.operands
        parts = [
            Sql(FORMATS[part]) if part in FORMATS else text_parameter("%" if part == "%%" else part)
            for part in format_parts(cast(str, cast(Literal, pattern).value))
        ]
        texts = joined([text_parameter(""), *parts], " || ")
        return once([_moment(moment, source)], "CASE WHEN a IS NOT NULL THEN " + texts + " END")


def _moment(node: Expression, source: Source) -> Sql:
    """Return the value as a timestamp in UTC; NULL if it isn't a Date."""
    if isinstance(node, Field):
        typed = source.typed(node.path, "Date")
        if typed is not None:
            return "((" + typed + ")::timestamptz AT TIME ZONE 'UTC')"
    moment = "(a->>'iso')::timestamptz AT TIME ZONE 'UTC'"
    return once([expression(node, source)], f"CASE WHEN {is_date('a')} THEN {moment} END")
