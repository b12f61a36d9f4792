"""Operators on dates, all in UTC."""

from __future__ import annotations

import re
from typing import Final

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from objects.core.pipeline.expressions import Call, Expression, Literal, Operand, Operator
from objects.core.values import date, normalise, normalise_date

MAX_FORMAT: Final = 100
"""The most characters of a format."""
_FORMAT_PART: Final = re.compile(r"%[YmdHMSLjuUVG%]|[^%]+")


class DatePart(Operator):
    names = (
        *("$year", "$month", "$dayOfMonth", "$dayOfWeek", "$dayOfYear"),
        *("$hour", "$minute", "$second", "$millisecond"),
        *("$week", "$isoWeek", "$isoWeekYear", "$isoDayOfWeek"),
    )
    summary = 'a part of a date, as a number; the operand is a date or `{date, timezone: "UTC"}`'

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        return Call(name, (_moment(operand.json, operand),))


class DateToString(Operator):
    """The format is a constant."""

    names = ("$dateToString",)
    largest = 16 * MAX_FORMAT
    summary = (
        "a date as text: `{date, format}` with `%Y %m %d %H %M %S %L %j %u %U %V %G`;"
        " without a format as in `2024-01-31T12:00:00.000Z`"
    )

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        json, place = operand.json, operand.place
        if not isinstance(json, dict) or "date" not in json:
            raise InvalidQuery(f"{place}: expected date and format")
        pattern = json.get("format", "%Y-%m-%dT%H:%M:%S.%LZ")
        if isinstance(pattern, str) and len(pattern) > MAX_FORMAT:
            raise InvalidQuery(f"{place}.format: expected at most {MAX_FORMAT} characters")
        if not isinstance(pattern, str) or "".join(_FORMAT_PART.findall(pattern)) != pattern:
            raise InvalidQuery(
                f"{place}.format: expected text with %Y %m %d %H %M %S %L %j %u %U %V %G"
            )
        moment: Json = {key: value for key, value in json.items() if key != "format"}
        return Call(name, (Literal(normalise(pattern, place)), _moment(moment, operand)))


class DateLiteral(Operator):
    names = ("$date",)
    summary = 'a constant date: `{"$date": "2024-01-31"}`'

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        return Literal(date(normalise_date(operand.json, operand.place)))


def format_parts(pattern: str) -> list[str]:
    """Return the parts of a date format: each a code like ``%Y``, or text."""
    return _FORMAT_PART.findall(pattern)


def _moment(json: Json, operand: Operand) -> Expression:
    if isinstance(json, list) and len(json) == 1:
        json = json[0]
    if isinstance(json, dict) and "date" in json:
        if json.get("timezone", "UTC") not in ("UTC", "GMT", "+00:00") or not (
            json.keys() <= {"date", "timezone"}
        ):
            raise InvalidQuery(f"{operand.place}: expected a date, in the time zone UTC")
        json = json["date"]
    return operand.expression(json, operand.place)
