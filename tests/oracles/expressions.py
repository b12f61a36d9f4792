"""What the expressions of the aggregation pipeline mean: ``evaluate(expression, document)``.

This is the reference for ``objects.sql.pipeline.expressions``. The rules:

* A value may be *missing* (``MISSING``), which is not null. Operators take it for null, but
  ``$eq`` and the order tell the two apart.
* An operand of a kind that an operator doesn't work on makes the result null; nothing fails.
* ``$add``, ``$subtract`` and ``$multiply`` are exact, in decimal; ``$divide`` and ``$avg`` are IEEE
  doubles.
* Values of different kinds are in MongoDB's order: missing, null, numbers, texts (by code point),
  objects, arrays, booleans, dates. Objects among themselves, and arrays, have some fixed order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import date as calendar_day
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import partial
from typing import Any, Final, TypeAlias, cast
from zoneinfo import ZoneInfo

from backend.kernel.json_types import Json
from objects.core.pipeline.expressions import (
    Call,
    Document,
    Expression,
    Field,
    Items,
    Literal,
)
from objects.core.pipeline.operators.dates import format_parts
from objects.core.values import canonical_number, date, equal, kind, number_key, wire_time


class _Missing:
    """The value of a field that isn't there."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
Value: TypeAlias = "Json | _Missing"

_CONTEXT: Final = Context(prec=6000)
_SMALLEST: Final = Decimal("1e-140")
_LARGEST: Final = Decimal("1e140")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS: Final = -62_135_596_800_000
_LAST_MS: Final = 253_402_300_799_999
_ASCII_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_ASCII_UPPER: Final = {lower: upper for upper, lower in _ASCII_LOWER.items()}


def evaluate(expression: Expression, document: Mapping[str, Json]) -> Value:
    """The value of an expression for one document."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Field):
        return value_at(document, expression.path)
    if isinstance(expression, Items):
        return [present(evaluate(item, document)) for item in expression.items]
    if isinstance(expression, Document):
        values = ((name, evaluate(part, document)) for name, part in expression.fields)
        return {name: value for name, value in values if not isinstance(value, _Missing)}
    return _call(expression, document)


def present(value: Value) -> Json:
    """The value; null if it is missing."""
    return None if isinstance(value, _Missing) else value


def value_at(document: Mapping[str, Json], path: Sequence[str]) -> Value:
    """The value at a path; at an array, the array of what its objects have there."""
    value: Value = dict(document)
    for step in path:
        if isinstance(value, list):
            items = [item[step] for item in value if isinstance(item, dict) and step in item]
            value = cast(Json, items)
        else:
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
    return value


def is_true(value: Value) -> bool:
    """Whether a condition holds: all but missing, null, false and 0 do."""
    if isinstance(value, _Missing) or value is None or isinstance(value, bool):
        return value is True
    return not (isinstance(value, int | float) and value == 0)


# --- order ---------------------------------------------------------------------------------------

_RANKS: Final[Mapping[str | None, int]] = {
    None: 0,
    "Number": 1,
    "String": 2,
    "Array": 4,
    "Boolean": 5,
    "Date": 6,
}
_OBJECT_RANK: Final = 3


def order_key(value: Value) -> tuple[int, Any]:
    """What values are put in order by."""
    if isinstance(value, _Missing):
        return (-1, 0)
    value_kind = kind(value)
    rank = _RANKS.get(value_kind, _OBJECT_RANK)
    if value is None:
        return (rank, 0)
    if isinstance(value, bool | str):
        return (rank, value)
    if isinstance(value, int | float):
        return (rank, number_key(value))
    if isinstance(value, dict) and value_kind == "Date":
        return (rank, value["iso"])
    return (rank, json.dumps(value, sort_keys=True))


def same(a: Value, b: Value) -> bool:
    """Whether two values are equal; missing is equal to missing alone."""
    if isinstance(a, _Missing) or isinstance(b, _Missing):
        return a is b
    return equal(a, b)


# --- numbers -------------------------------------------------------------------------------------


def decimal_of(value: Value) -> Decimal | None:
    """A number as an exact decimal; None for what isn't one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Decimal(number_key(value))


def number_of(value: Decimal) -> int | float:
    """A decimal as JSON has it."""
    if value == value.to_integral_value():
        return int(value)
    return canonical_number(float(value))


def quotient(a: Decimal, b: Decimal) -> Json:
    """The IEEE double that a division gives; null by zero and for numbers beyond 1e±140."""
    if not _SMALLEST <= abs(b) <= _LARGEST or not (a == 0 or _SMALLEST <= abs(a) <= _LARGEST):
        return None
    return canonical_number(float(a) / float(b))


def _arithmetic(
    operate: Callable[[Decimal, Decimal], Decimal | None], values: Sequence[Value]
) -> Json:
    total: Decimal | None = None
    for index, value in enumerate(values):
        number = decimal_of(value)
        if number is None:
            return None
        total = number if index == 0 or total is None else operate(total, number)
        if total is None:
            return None
    return None if total is None else number_of(total)


def _is_date(value: Value) -> bool:
    return isinstance(value, dict) and value.get("__type") == "Date"


def milliseconds(value: Value) -> Decimal | None:
    """A Date as milliseconds since 1970."""
    moment = _moment(value)
    return None if moment is None else Decimal((moment - _EPOCH) // timedelta(milliseconds=1))


def _moment(value: Value) -> datetime | None:
    if not isinstance(value, dict) or value.get("__type") != "Date":
        return None
    return datetime.fromisoformat(str(value["iso"]))


def _date_of(ms: Decimal) -> Json:
    rounded = ms.to_integral_value(ROUND_FLOOR)
    if not _FIRST_MS <= rounded <= _LAST_MS:
        return None
    moment = _EPOCH + timedelta(milliseconds=int(rounded))
    return cast(Json, date(wire_time(moment)))


def _add(values: Sequence[Value]) -> Json:
    total: Json = 0
    for value in values:
        if total is None:
            return None
        total = _plus(total, value)
    return total


def _plus(a: Value, b: Value) -> Json:
    x, y = decimal_of(a), decimal_of(b)
    if x is not None and y is not None:
        return number_of(_CONTEXT.add(x, y))
    if _is_date(b):
        a, b, x, y = b, a, y, x
    ms = milliseconds(a)
    return None if ms is None or y is None else _date_of(_CONTEXT.add(ms, y))


def _subtract(a: Value, b: Value) -> Json:
    x, y = decimal_of(a), decimal_of(b)
    if x is not None and y is not None:
        return number_of(_CONTEXT.subtract(x, y))
    start, end = milliseconds(b), milliseconds(a)
    if end is None:
        return None
    if start is not None:
        return number_of(end - start)
    return None if y is None else _date_of(_CONTEXT.subtract(end, y))


def _rounded(value: Value, digits: Value, rounding: str) -> Json:
    number = decimal_of(value)
    if number is None or not isinstance(digits, int):
        return None
    shifted = _CONTEXT.scaleb(number, digits).to_integral_value(rounding)
    return number_of(_CONTEXT.scaleb(shifted, -digits))


def _modulo(a: Decimal, b: Decimal) -> Decimal | None:
    return None if b == 0 else _CONTEXT.remainder(a, b)


# --- text ----------------------------------------------------------------------------------------


def _cased(value: Value, table: Mapping[int, int]) -> Json:
    if isinstance(value, str):
        return value.translate(table)
    return "" if present(value) is None else None


def _substring(text: Value, start: Value, length: Value) -> Json:
    if present(text) is None:
        return ""
    full = [n for n in (start, length) if isinstance(n, int) and not isinstance(n, bool)]
    if not isinstance(text, str) or len(full) != 2 or full[0] < 0:
        return None
    return text[full[0] :] if full[1] < 0 else text[full[0] : full[0] + full[1]]


def _concat(values: Sequence[Value]) -> Json:
    texts = [value for value in values if isinstance(value, str)]
    return "".join(texts) if len(texts) == len(values) else None


# --- dates ---------------------------------------------------------------------------------------

_PARTS: Final[Mapping[str, Callable[[datetime], int]]] = {
    "$year": lambda m: m.year,
    "$month": lambda m: m.month,
    "$dayOfMonth": lambda m: m.day,
    "$dayOfWeek": lambda m: m.isoweekday() % 7 + 1,
    "$dayOfYear": lambda m: m.timetuple().tm_yday,
    "$hour": lambda m: m.hour,
    "$minute": lambda m: m.minute,
    "$second": lambda m: m.second,
    "$millisecond": lambda m: m.microsecond // 1000,
    "$week": lambda m: (m.timetuple().tm_yday + 6 - m.isoweekday() % 7) // 7,
    "$isoWeek": lambda m: m.isocalendar().week,
    "$isoWeekYear": lambda m: m.isocalendar().year,
    "$isoDayOfWeek": lambda m: m.isoweekday(),
}

_FORMAT_CODES: Final[Mapping[str, tuple[str, int]]] = {
    "%Y": ("$year", 4),
    "%m": ("$month", 2),
    "%d": ("$dayOfMonth", 2),
    "%H": ("$hour", 2),
    "%M": ("$minute", 2),
    "%S": ("$second", 2),
    "%L": ("$millisecond", 3),
    "%j": ("$dayOfYear", 3),
    "%u": ("$isoDayOfWeek", 1),
    "%U": ("$week", 2),
    "%V": ("$isoWeek", 2),
    "%G": ("$isoWeekYear", 4),
}


def _zone(name: Value) -> tzinfo:
    if isinstance(name, str) and name[0] in "+-":
        return datetime.strptime(name, "%z").tzinfo or UTC
    return ZoneInfo(str(name))


def _part(name: str, value: Value, zone: Value) -> Json:
    moment = _moment(value)
    return None if moment is None else _PARTS[name](moment.astimezone(_zone(zone)))


def _truncated(value: Value, unit: Value, size: Value, weekday: Value, zone: Value) -> Json:
    moment = _moment(value)
    if moment is None:
        return None
    count, local_zone = int(str(size)), _zone(zone)
    local = moment.astimezone(local_zone)
    units: dict[Value, timedelta] = {
        "hour": timedelta(hours=count),
        "minute": timedelta(minutes=count),
        "second": timedelta(seconds=count),
        "millisecond": timedelta(milliseconds=count),
    }
    if unit in units:
        origin = datetime(2000, 1, 1, tzinfo=local_zone).astimezone(UTC)
        beginning = origin + (moment - origin) // units[unit] * units[unit]
    elif unit in ("day", "week"):
        first = _FIRST_DAY
        while unit == "week" and first.weekday() != weekday:
            first += timedelta(days=1)
        length = count * (7 if unit == "week" else 1)
        try:
            day = first + (local.date() - first) // timedelta(days=length) * timedelta(days=length)
            beginning = datetime(day.year, day.month, day.day, tzinfo=local_zone)
        except OverflowError:
            return None
    else:
        length = count * {"month": 1, "quarter": 3, "year": 12}[str(unit)]
        months = ((local.year - 2000) * 12 + local.month - 1) // length * length
        year, month = divmod(months, 12)
        if not 1 <= year + 2000 <= 9999:
            return None
        beginning = datetime(year + 2000, month + 1, 1, tzinfo=local_zone)
    return _date_of(Decimal((beginning.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)))


_FIRST_DAY: Final = calendar_day(2000, 1, 1)


def _date_to_string(pattern: Value, value: Value, zone: Value) -> Json:
    moment = _moment(value)
    if moment is None:
        return None
    moment = moment.astimezone(_zone(zone))
    texts = []
    for part in format_parts(cast(str, pattern)):
        if part in _FORMAT_CODES:
            name, width = _FORMAT_CODES[part]
            texts.append(f"{_PARTS[name](moment):0{width}d}")
        else:
            texts.append("%" if part == "%%" else part)
    return "".join(texts)


# --- arrays --------------------------------------------------------------------------------------


def _element(array: Value, position: Value) -> Value:
    if not isinstance(array, list) or not isinstance(position, int) or isinstance(position, bool):
        return None
    if position < -len(array) or position >= len(array):
        return MISSING
    return array[position]


def _concat_arrays(values: Sequence[Value]) -> Json:
    joined: list[Json] = []
    for value in values:
        if not isinstance(value, list):
            return None
        joined += value
    return joined


# --- calls ---------------------------------------------------------------------------------------


def _call(call: Call, document: Mapping[str, Json]) -> Value:
    name, operands = call.name, call.operands
    if name in ("$cond", "$switch"):
        cases = iter(operands[:-1])
        for case, then in zip(cases, cases, strict=True):
            if is_true(evaluate(case, document)):
                return evaluate(then, document)
        return evaluate(operands[-1], document)
    if name in ("$and", "$or"):
        holds = (is_true(evaluate(operand, document)) for operand in operands)
        return all(holds) if name == "$and" else any(holds)
    values = [evaluate(operand, document) for operand in operands]
    if name in _PARTS:
        return _part(name, *values)
    return _FUNCTIONS[name](*values)


def _compare(test: Callable[[Any, Any], bool], a: Value, b: Value) -> Json:
    return test(order_key(a), order_key(b))


def _if_null(*values: Value) -> Value:
    return next((value for value in values if present(value) is not None), values[-1])


def _unary(operate: Callable[[Decimal], Decimal], value: Value) -> Json:
    number = decimal_of(value)
    return None if number is None else number_of(operate(number))


_FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "$add": lambda *values: _add(values),
    "$subtract": _subtract,
    "$multiply": lambda *values: _arithmetic(_CONTEXT.multiply, values),
    "$divide": lambda a, b: _divide(a, b),
    "$mod": lambda *values: _arithmetic(_modulo, values),
    "$abs": partial(_unary, abs),
    "$ceil": lambda value: _rounded(value, 0, ROUND_CEILING),
    "$floor": lambda value: _rounded(value, 0, ROUND_FLOOR),
    "$round": lambda value, digits: _rounded(value, digits, ROUND_HALF_EVEN),
    "$concat": lambda *values: _concat(values),
    "$toLower": lambda value: _cased(value, _ASCII_LOWER),
    "$toUpper": lambda value: _cased(value, _ASCII_UPPER),
    "$substr": _substring,
    "$substrCP": _substring,
    "$strLenCP": lambda value: len(value) if isinstance(value, str) else None,
    "$eq": same,
    "$ne": lambda a, b: not same(a, b),
    "$gt": partial(_compare, lambda a, b: a > b),
    "$gte": partial(_compare, lambda a, b: a >= b),
    "$lt": partial(_compare, lambda a, b: a < b),
    "$lte": partial(_compare, lambda a, b: a <= b),
    "$cmp": lambda a, b: (order_key(a) > order_key(b)) - (order_key(a) < order_key(b)),
    "$not": lambda value: not is_true(value),
    "$in": lambda value, array: (
        any(same(value, item) for item in array) if isinstance(array, list) else None
    ),
    "$ifNull": _if_null,
    "$size": lambda value: len(value) if isinstance(value, list) else None,
    "$isArray": lambda value: isinstance(value, list),
    "$arrayElemAt": _element,
    "$first": lambda value: _element(value, 0),
    "$last": lambda value: _element(value, -1),
    "$concatArrays": lambda *values: _concat_arrays(values),
    "$dateToString": _date_to_string,
    "$dateTrunc": _truncated,
}

NAMES: Final = {*_FUNCTIONS, *_PARTS, "$cond", "$switch", "$and", "$or"}
"""The operators that have a meaning here."""


def _divide(a: Value, b: Value) -> Json:
    x, y = decimal_of(a), decimal_of(b)
    return None if x is None or y is None else quotient(x, y)
