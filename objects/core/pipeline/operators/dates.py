"""Operators on dates, in UTC or in a time zone that the operand names."""

from __future__ import annotations

import re
from functools import cache
from typing import Final
from zoneinfo import available_timezones

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from objects.core.pipeline.expressions import Call, Expression, Literal, Operand, Operator
from objects.core.values import date, normalise, normalise_date

MAX_FORMAT: Final = 100
"""The most characters of a format."""
MAX_BIN: Final = 1000
"""The most units of ``$dateTrunc`` that are taken together."""
UTC: Final = "UTC"

_FORMAT_PART: Final = re.compile(r"%[YmdHMSLjuUVG%]|[^%]+")
_OFFSET: Final = re.compile(r"([+-])([01]\d|2[0-3])(?::?([0-5]\d))?")
_UNITS: Final = (
    *("year", "quarter", "month", "week", "day"),
    *("hour", "minute", "second", "millisecond"),
)
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class DatePart(Operator):
    names = (
        *("$year", "$month", "$dayOfMonth", "$dayOfWeek", "$dayOfYear"),
        *("$hour", "$minute", "$second", "$millisecond"),
        *("$week", "$isoWeek", "$isoWeekYear", "$isoDayOfWeek"),
    )
    summary = (
        "a part of a date, as a number; the operand is a date or"
        ' `{date, timezone: "Europe/Berlin"}`, a name of the IANA database or an offset (`+02:00`)'
    )

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        moment, zone = _moment(operand.json, operand)
        return Call(name, (moment, Literal(zone)))


class DateToString(Operator):
    """The format is a constant."""

    names = ("$dateToString",)
    largest = 16 * MAX_FORMAT
    summary = (
        "a date as text: `{date, format, timezone}` with `%Y %m %d %H %M %S %L %j %u %U %V %G`;"
        " without a format as in `2024-01-31T12:00:00.000Z`, in a time zone without the `Z`"
    )

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        json, place = operand.json, operand.place
        if not isinstance(json, dict) or "date" not in json:
            raise InvalidQuery(f"{place}: expected date and format")
        rest: Json = {key: value for key, value in json.items() if key != "format"}
        moment, zone = _moment(rest, operand)
        is_local = "timezone" in json
        pattern = json.get("format", f"%Y-%m-%dT%H:%M:%S.%L{'' if is_local else 'Z'}")
        if isinstance(pattern, str) and len(pattern) > MAX_FORMAT:
            raise InvalidQuery(f"{place}.format: expected at most {MAX_FORMAT} characters")
        if not isinstance(pattern, str) or "".join(_FORMAT_PART.findall(pattern)) != pattern:
            raise InvalidQuery(
                f"{place}.format: expected text with %Y %m %d %H %M %S %L %j %u %U %V %G"
            )
        return Call(name, (Literal(normalise(pattern, place)), moment, Literal(zone)))


class DateTruncation(Operator):
    """Unit, number of units, time zone and first day of the week are constants."""

    names = ("$dateTrunc",)
    summary = (
        "the beginning of the year, quarter, month, week, day, hour, minute, second or millisecond"
        " of a date: `{date, unit, binSize, timezone, startOfWeek}`."
        f" `binSize` units are taken together (1; at most {MAX_BIN}), counted from the year 2000;"
        " weeks begin on Sunday unless `startOfWeek` says otherwise"
    )

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        json, place = operand.json, operand.place
        if not isinstance(json, dict) or not {"date", "unit"} <= json.keys():
            raise InvalidQuery(f"{place}: expected date and unit")
        options = dict(json)
        unit, size = options.pop("unit"), options.pop("binSize", 1)
        first_day = options.pop("startOfWeek", "sunday")
        if unit not in _UNITS:
            raise InvalidQuery(f"{place}.unit: expected one of {', '.join(_UNITS)}")
        if type(size) is not int or not 1 <= size <= MAX_BIN:
            raise InvalidQuery(f"{place}.binSize: expected a whole number from 1 to {MAX_BIN}")
        moment, zone = _moment(options, operand)
        settings: tuple[Json, ...] = (unit, size, _weekday(first_day, f"{place}.startOfWeek"), zone)
        return Call(name, (moment, *map(Literal, settings)))


class DateLiteral(Operator):
    names = ("$date",)
    summary = 'a constant date: `{"$date": "2024-01-31"}`'

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        return Literal(date(normalise_date(operand.json, operand.place)))


def format_parts(pattern: str) -> list[str]:
    """Return the parts of a date format: each a code like ``%Y``, or text."""
    return _FORMAT_PART.findall(pattern)


def _moment(json: Json, operand: Operand) -> tuple[Expression, str]:
    """Return the date that an operand names, and its time zone."""
    if isinstance(json, list) and len(json) == 1:
        json = json[0]
    zone = UTC
    if isinstance(json, dict) and "date" in json:
        unknown = next((key for key in json if key not in ("date", "timezone")), None)
        if unknown is not None:
            raise InvalidQuery(f"{operand.place}.{unknown}: expected date and timezone alone")
        zone = _zone(json.get("timezone", UTC), f"{operand.place}.timezone")
        json = json["date"]
    return operand.expression(json, operand.place), zone


def _zone(json: Json, place: str) -> str:
    """Return the name of a time zone, or its offset as ``+02:00``."""
    if isinstance(json, str):
        offset = _OFFSET.fullmatch(json)
        if offset is not None:
            sign, hours, minutes = offset.groups("00")
            return f"{sign}{hours}:{minutes}"
        if json in _zone_names():
            return json
    raise InvalidQuery(
        f"{place}: expected the name of a time zone, such as Europe/Berlin, or an offset, such as"
        " +02:00"
    )


@cache
def _zone_names() -> frozenset[str]:
    """Return the names of the IANA database; "localtime" is a file of the machine."""
    return frozenset(available_timezones() - {"localtime"})


def _weekday(json: Json, place: str) -> int:
    """Return the number of a day of the week, 0 for Monday, by its name or three letters of it."""
    name = json.lower() if isinstance(json, str) else ""
    for number, weekday in enumerate(_WEEKDAYS):
        if name in (weekday, weekday[:3]):
            return number
    raise InvalidQuery(f"{place}: expected a day of the week, such as monday")
