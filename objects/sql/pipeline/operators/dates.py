"""The SQL of operators on dates, and of arithmetic with dates.

The texts are about values that they name ``a`` and ``b`` (see ``jsonb.once``); the parts about a
timestamp of the operand's time zone that they name ``a``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from backend.kernel.json_types import Json
from objects.core.pipeline.expressions import Call, Expression, Field, Literal
from objects.core.pipeline.operators.dates import (
    UTC,
    DatePart,
    DateToString,
    DateTruncation,
    format_parts,
)
from objects.sql.fragments import Sql
from objects.sql.pipeline.expressions import (
    NumericSql,
    OperatorSql,
    Source,
    TextSql,
    expression,
    sql_of,
)
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


_MS_OF_UNIT: Final[Mapping[str, int]] = {
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1000,
    "millisecond": 1,
}
_DAYS_OF_UNIT: Final[Mapping[str, int]] = {"day": 1, "week": 7}
_MONTHS_OF_UNIT: Final[Mapping[str, int]] = {"month": 1, "quarter": 3, "year": 12}


@sql_of(DatePart)
class DatePartSql(NumericSql):
    def number(self, call: Call, source: Source) -> Sql:
        moment, zone = call.operands
        return once([_local(moment, _zone(zone), source)], PARTS[call.name])


@sql_of(DateToString)
class DateToStringSql(TextSql):
    def text(self, call: Call, source: Source) -> Sql:
        pattern, moment, zone = call.operands
        parts = [
            Sql(FORMATS[part]) if part in FORMATS else text_parameter("%" if part == "%%" else part)
            for part in format_parts(cast(str, _constant(pattern)))
        ]
        texts = joined([text_parameter(""), *parts], " || ")
        local = _local(moment, _zone(zone), source)
        return once([local], "CASE WHEN a IS NOT NULL THEN " + texts + " END")


@sql_of(DateTruncation)
class DateTruncationSql(OperatorSql):
    def value(self, call: Call, source: Source) -> Sql:
        moment, unit, size, weekday, zone = call.operands
        name, count = cast(str, _constant(unit)), cast(int, _constant(size))
        beginning = _beginning(name, count, cast(int, _constant(weekday)), _zone(zone))
        milliseconds = once([_instant(moment, source)], beginning)
        return once(
            [milliseconds], "CASE WHEN a IS NULL THEN 'null'::jsonb ELSE " + _date("a") + " END"
        )


def _beginning(unit: str, count: int, weekday: int, zone: Sql) -> Sql:
    """Return the milliseconds of the beginning of the units that the timestamptz ``a`` is in.

    Hours and shorter units are counted by the time that has passed, so that each hour of a day on
    which the clocks change has a beginning of its own; longer ones by the calendar of the zone.
    """
    if unit in _MS_OF_UNIT:
        length = count * _MS_OF_UNIT[unit]
        origin = "extract(epoch FROM timestamp '2000-01-01' AT TIME ZONE " + zone + ") * 1000"
        passed = "floor(extract(epoch FROM a) * 1000) - " + origin
        return "floor((" + passed + f") / {length}) * {length} + " + origin
    local = "(a AT TIME ZONE " + zone + ")"
    if unit in _DAYS_OF_UNIT:
        length = count * _DAYS_OF_UNIT[unit]
        # The first day of the year 2000 was a Saturday.
        first = (
            f"date '2000-01-{1 + (weekday - 5) % 7:02}'" if unit == "week" else "date '2000-01-01'"
        )
        days = "floor((" + local + f"::date - {first})::numeric / {length}) * {length}"
        start = f"({first} + (" + days + ")::int)::timestamp"
    else:
        length = count * _MONTHS_OF_UNIT[unit]
        passed = (
            "((extract(year FROM "
            + local
            + ") - 2000) * 12 + extract(month FROM "
            + local
            + ") - 1)"
        )
        months = "floor(" + passed + f" / {length}) * {length}"
        start = "timestamp '2000-01-01' + make_interval(months => (" + months + ")::int)"
    return "extract(epoch FROM (" + start + ") AT TIME ZONE " + zone + ") * 1000"


def _constant(node: Expression) -> Json:
    return cast(Literal, node).value


def _zone(node: Expression) -> Sql:
    """Return what stands after ``AT TIME ZONE``. An offset as text would have POSIX's sign."""
    name = cast(str, _constant(node))
    if name == UTC:
        return Sql("'UTC'")
    return Sql("%s::interval", (name,)) if name[0] in "+-" else text_parameter(name)


def _local(node: Expression, zone: Sql, source: Source) -> Sql:
    """Return the value as a timestamp of a time zone; NULL if it isn't a Date."""
    return "(" + _instant(node, source) + " AT TIME ZONE " + zone + ")"


def _instant(node: Expression, source: Source) -> Sql:
    """Return the value as a timestamptz; NULL if it isn't a Date."""
    if isinstance(node, Field):
        typed = source.typed(node.path, "Date")
        if typed is not None:
            return "(" + typed + ")::timestamptz"
    return once(
        [expression(node, source)], f"CASE WHEN {is_date('a')} THEN (a->>'iso')::timestamptz END"
    )
