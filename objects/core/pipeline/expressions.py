"""Expressions of the aggregation pipeline: ``"$price"``, ``{"$add": ["$price", 1]}``.

``parse_expression`` is the only gate: it knows every operator and how many operands it takes, so
readers needn't check. What an expression means is in
``tests.oracles.expressions``, which the SQL is tested against.

A field's path begins with its name; ``_id`` is another name for ``objectId``, as are the native
names of MongoDB for the two timestamps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.names import PROHIBITED_KEYS, is_storable_text
from objects.core.values import date, normalise, normalise_date

Path: TypeAlias = tuple[str, ...]

MAX_DEPTH: Final = 30
MAX_STEPS: Final = 20
_MANY: Final = 50

NATIVE_NAMES: Final[Mapping[str, str]] = {
    "_id": "objectId",
    "_created_at": "createdAt",
    "_updated_at": "updatedAt",
}


@dataclass(frozen=True, slots=True)
class Literal:
    """A value."""

    value: Json


@dataclass(frozen=True, slots=True)
class Field:
    """The value at a path; without steps, the whole document."""

    path: Path


@dataclass(frozen=True, slots=True)
class Items:
    """An array of values; a missing one is null."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """An object; what is missing is left out."""

    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """An operator and its operands."""

    name: str
    operands: tuple[Expression, ...]


Expression: TypeAlias = Literal | Field | Items | Document | Call

DATE_PARTS: Final = frozenset(
    {
        "$year",
        "$month",
        "$dayOfMonth",
        "$dayOfWeek",
        "$dayOfYear",
        "$hour",
        "$minute",
        "$second",
        "$millisecond",
        "$week",
        "$isoWeek",
        "$isoWeekYear",
        "$isoDayOfWeek",
    }
)

# The fewest and the most operands of each operator that has no form of its own.
_OPERANDS: Final[Mapping[str, tuple[int, int]]] = {
    "$add": (1, _MANY),
    "$subtract": (2, 2),
    "$multiply": (1, _MANY),
    "$divide": (2, 2),
    "$mod": (2, 2),
    "$abs": (1, 1),
    "$ceil": (1, 1),
    "$floor": (1, 1),
    "$concat": (1, _MANY),
    "$toLower": (1, 1),
    "$toUpper": (1, 1),
    "$substr": (3, 3),
    "$substrCP": (3, 3),
    "$strLenCP": (1, 1),
    "$eq": (2, 2),
    "$ne": (2, 2),
    "$gt": (2, 2),
    "$gte": (2, 2),
    "$lt": (2, 2),
    "$lte": (2, 2),
    "$cmp": (2, 2),
    "$and": (0, _MANY),
    "$or": (0, _MANY),
    "$not": (1, 1),
    "$in": (2, 2),
    "$ifNull": (2, _MANY),
    "$size": (1, 1),
    "$isArray": (1, 1),
    "$arrayElemAt": (2, 2),
    "$first": (1, 1),
    "$last": (1, 1),
    "$concatArrays": (1, _MANY),
}

_FORMAT_PART: Final = re.compile(r"%[YmdHMSLjuUVG%]|[^%]+")


def parse_expression(json: Json, place: str, depth: int = 0) -> Expression:
    """Return the expression that a client wrote. Raises ``InvalidQuery`` that names the place."""
    if depth > MAX_DEPTH:
        raise InvalidQuery(f"{place}: an expression is nested at most {MAX_DEPTH} levels deep")
    if isinstance(json, str) and json.startswith("$"):
        return parse_field(json, place)
    if isinstance(json, list):
        items = _all(json, place, depth)
        if all(isinstance(item, Literal) for item in items):
            return Literal([item.value for item in items if isinstance(item, Literal)])
        return Items(items)
    if not isinstance(json, dict) or "__type" in json:
        return Literal(normalise(json, place))
    operators = [key for key in json if key.startswith("$")]
    if not operators:
        return _document(json, place, depth)
    if len(json) > 1:
        raise InvalidQuery(f"{place}: an expression has one operator, found {shown(list(json))}")
    return _call(operators[0], json[operators[0]], f"{place}.{shown(operators[0])}", depth)


def parse_field(text: Json, place: str) -> Field:
    """``$a.b``, ``$$ROOT`` or ``$$CURRENT.a``."""
    if not isinstance(text, str) or not text.startswith("$"):
        raise InvalidQuery(f"{place}: expected a field path that begins with $")
    if text.startswith("$$"):
        name, _, subpath = text[2:].partition(".")
        if name not in ("ROOT", "CURRENT"):
            raise InvalidQuery(f"{place}: unknown variable $${shown(name)}")
        return Field(parse_path(subpath, place) if subpath else ())
    return Field(parse_path(text[1:], place))


def parse_path(text: str, place: str) -> Path:
    """Return the steps of ``a.b``: a field's name and keys inside its value."""
    steps = text.split(".")
    for step in steps:
        if step == "" or step.startswith("$") or step in PROHIBITED_KEYS:
            raise InvalidQuery(f"{place}: bad field path: {shown(text)}")
        if not is_storable_text(step):
            raise InvalidQuery(f"{place}: bad field path: {shown(text)}")
    if len(steps) > MAX_STEPS:
        raise InvalidQuery(f"{place}: a field path has at most {MAX_STEPS} steps")
    steps[0] = NATIVE_NAMES.get(steps[0], steps[0])
    return tuple(steps)


def parse_name(text: str, place: str) -> str:
    """Return the name of one field of a result; ``_id`` is ``objectId``."""
    if "." in text or text == "__type":
        raise InvalidQuery(f"{place}: {shown(text)} can't be the name of a field")
    return parse_path(text, place)[0]


def _document(json: dict[str, Json], place: str, depth: int) -> Expression:
    fields = []
    for key, value in json.items():
        if "." in key or key in PROHIBITED_KEYS or not is_storable_text(key):
            raise InvalidQuery(f"{place}: {shown(key)} can't be the name of a field")
        fields.append((key, parse_expression(value, f"{place}.{shown(key)}", depth + 1)))
    if all(isinstance(value, Literal) for _, value in fields):
        return Literal({name: v.value for name, v in fields if isinstance(v, Literal)})
    return Document(tuple(fields))


def _call(name: str, operand: Json, place: str, depth: int) -> Expression:
    if name == "$literal":
        return Literal(normalise(operand, place))
    if name == "$date":
        return Literal(date(normalise_date(operand, place)))
    if name in DATE_PARTS:
        return Call(name, (_moment(operand, place, depth),))
    special = _SPECIAL.get(name)
    if special is not None:
        return special(operand, place, depth)
    if name not in _OPERANDS:
        raise InvalidQuery(f"{place}: unrecognized expression '{shown(name)}'")
    fewest, most = _OPERANDS[name]
    items: list[Json] = operand if isinstance(operand, list) else [operand]
    if not fewest <= len(items) <= most:
        expected = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise InvalidQuery(f"{place}: expected {expected} operands, found {len(items)}")
    return Call(name, _all(items, place, depth))


def _all(items: list[Json], place: str, depth: int) -> tuple[Expression, ...]:
    return tuple(
        parse_expression(item, f"{place}.{index}", depth + 1) for index, item in enumerate(items)
    )


def _moment(operand: Json, place: str, depth: int) -> Expression:
    if isinstance(operand, list) and len(operand) == 1:
        operand = operand[0]
    if isinstance(operand, dict) and "date" in operand:
        if operand.get("timezone", "UTC") not in ("UTC", "GMT", "+00:00") or not (
            operand.keys() <= {"date", "timezone"}
        ):
            raise InvalidQuery(f"{place}: expected a date, in the time zone UTC")
        operand = operand["date"]
    return parse_expression(operand, place, depth + 1)


def _condition(operand: Json, place: str, depth: int) -> Expression:
    if isinstance(operand, dict):
        if set(operand) != {"if", "then", "else"}:
            raise InvalidQuery(f"{place}: expected if, then and else")
        operand = [operand["if"], operand["then"], operand["else"]]
    if not isinstance(operand, list) or len(operand) != 3:
        raise InvalidQuery(f"{place}: expected 3 operands")
    return Call("$cond", _all(operand, place, depth))


def _switch(operand: Json, place: str, depth: int) -> Expression:
    if not isinstance(operand, dict) or not operand.keys() <= {"branches", "default"}:
        raise InvalidQuery(f"{place}: expected branches and default")
    branches = operand.get("branches")
    if not isinstance(branches, list) or not 1 <= len(branches) <= _MANY:
        raise InvalidQuery(f"{place}.branches: expected 1 to {_MANY} branches")
    parts: list[Expression] = []
    for index, branch in enumerate(branches):
        if not isinstance(branch, dict) or set(branch) != {"case", "then"}:
            raise InvalidQuery(f"{place}.branches.{index}: expected case and then")
        parts += _all([branch["case"], branch["then"]], f"{place}.branches.{index}", depth)
    default = parse_expression(operand.get("default"), f"{place}.default", depth + 1)
    return Call("$switch", (*parts, default))


def _round(operand: Json, place: str, depth: int) -> Expression:
    items: list[Json] = operand if isinstance(operand, list) else [operand]
    if not 1 <= len(items) <= 2:
        raise InvalidQuery(f"{place}: expected 1 to 2 operands, found {len(items)}")
    digits = items[1] if len(items) == 2 else 0
    if isinstance(digits, bool) or not isinstance(digits, int) or not -20 <= digits <= 100:
        raise InvalidQuery(f"{place}.1: expected a whole number from -20 to 100")
    return Call("$round", (parse_expression(items[0], f"{place}.0", depth + 1), Literal(digits)))


def _date_to_string(operand: Json, place: str, depth: int) -> Expression:
    if not isinstance(operand, dict) or "date" not in operand:
        raise InvalidQuery(f"{place}: expected date and format")
    pattern = operand.get("format", "%Y-%m-%dT%H:%M:%S.%LZ")
    if not isinstance(pattern, str) or "".join(_FORMAT_PART.findall(pattern)) != pattern:
        raise InvalidQuery(
            f"{place}.format: expected text with %Y %m %d %H %M %S %L %j %u %U %V %G"
        )
    moment = {key: value for key, value in operand.items() if key != "format"}
    return Call(
        "$dateToString", (Literal(normalise(pattern, place)), _moment(moment, place, depth))
    )


def format_parts(pattern: str) -> list[str]:
    """Return the parts of a date format: each a code like ``%Y``, or text."""
    return _FORMAT_PART.findall(pattern)


_SPECIAL: Final = {
    "$cond": _condition,
    "$switch": _switch,
    "$round": _round,
    "$dateToString": _date_to_string,
}
