"""The filter builder: conditions chosen from forms, as parts of a ``where``.

The ``where`` itself is all that a page keeps. ``operators`` says what can be asked of a field,
``add`` joins a condition to a ``where``, ``conditions`` takes one apart so that each part can be
shown and removed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from backend.kernel.errors import InvalidJSON, ServiceError
from backend.kernel.json_types import Json
from objects.admin.values import read_number, read_point
from objects.core.schema.definition import FieldType
from objects.core.values import date, normalise_date, pointer

_SIGNS_OF_REGEX = re.compile(r"([\\.^$|?*+()\[\]{}])")


class BadValue(InvalidJSON):
    """What was entered beside an operator isn't a value that it takes."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Something to ask of a field. ``make`` gives the constraint for the text entered."""

    key: str
    label: str
    make: Callable[[FieldType, str], Json]
    takes_value: bool = True
    hint: str = ""


def _plain(field: FieldType, text: str) -> Json:
    return read_value(field, text)


def _with(name: str) -> Callable[[FieldType, str], Json]:
    return lambda field, text: {name: read_value(field, text)}


def _constant(value: Json) -> Callable[[FieldType, str], Json]:
    return lambda field, text: copy.deepcopy(value)


def _listed(name: str) -> Callable[[FieldType, str], Json]:
    def make(field: FieldType, text: str) -> Json:
        return {name: [read_value(field, one.strip()) for one in text.split(",") if one.strip()]}

    return make


def _pattern(before: str, options: str = "") -> Callable[[FieldType, str], Json]:
    def make(field: FieldType, text: str) -> Json:
        found: dict[str, Json] = {"$regex": before + _SIGNS_OF_REGEX.sub(r"\\\1", text)}
        return found | ({"$options": options} if options else {})

    return make


def _regex(field: FieldType, text: str) -> Json:
    return {"$regex": text}


def _words(field: FieldType, text: str) -> Json:
    return {"$text": {"$search": {"$term": text}}}


def _element(field: FieldType, text: str) -> Json:
    return _json_or_text(text)


def _all(field: FieldType, text: str) -> Json:
    values = _json_or_text(text)
    return {"$all": values if isinstance(values, list) else [values]}


def _near(field: FieldType, text: str) -> Json:
    parts = text.split(",")
    if len(parts) != 3:
        raise BadValue("expected latitude, longitude, kilometres")
    point = read_point(parts[0], parts[1])
    return {"$nearSphere": point, "$maxDistanceInKilometers": read_number(parts[2])}


def _holds_point(field: FieldType, text: str) -> Json:
    parts = text.split(",")
    if len(parts) != 2:
        raise BadValue("expected latitude, longitude")
    return {"$geoIntersects": {"$point": read_point(parts[0], parts[1])}}


_IS = Operator("is", "is", _plain)
_IS_NOT = Operator("isNot", "is not", _with("$ne"))
_LISTED = Operator("in", "is one of a, b, c", _listed("$in"))
_EXISTS = Operator("exists", "has a value", _constant({"$exists": True}), takes_value=False)
_MISSING = Operator("missing", "has no value", _constant({"$exists": False}), takes_value=False)
_RANGES = (
    Operator("lt", "<", _with("$lt")),
    Operator("lte", "≤", _with("$lte")),
    Operator("gt", ">", _with("$gt")),
    Operator("gte", "≥", _with("$gte")),
)
_THERE = (_EXISTS, _MISSING)
_OPERATORS: Final[Mapping[str, tuple[Operator, ...]]] = {
    "String": (
        *(_IS, _IS_NOT),
        Operator("begins", "begins with", _pattern("^")),
        Operator("contains", "contains, in any case", _pattern("", "i")),
        Operator("words", "has the words", _words),
        Operator("regex", "matches the expression", _regex),
        *(_LISTED, *_RANGES, *_THERE),
    ),
    "Number": (_IS, _IS_NOT, *_RANGES, _LISTED, *_THERE),
    "Date": (
        *(_RANGES[3], _RANGES[2], _RANGES[1], _RANGES[0]),
        *(_IS, *_THERE),
    ),
    "Boolean": (
        Operator("true", "is true", _constant(True), takes_value=False),
        Operator("false", "is false", _constant(False), takes_value=False),
        Operator("notTrue", "isn't true", _constant({"$ne": True}), takes_value=False),
        *_THERE,
    ),
    "Pointer": (
        Operator("is", "is", _plain, hint="an object id"),
        *(_IS_NOT, _LISTED, *_THERE),
    ),
    "Relation": (Operator("is", "has the member", _plain, hint="an object id"),),
    "Array": (
        Operator("contains", "contains", _element, hint="text, or JSON"),
        Operator("all", "contains all of", _all, hint='["a", "b"]'),
        *_THERE,
    ),
    "GeoPoint": (
        Operator("near", "is near", _near, hint="latitude, longitude, kilometres"),
        *_THERE,
    ),
    "Polygon": (
        Operator("holds", "holds the point", _holds_point, hint="latitude, longitude"),
        *_THERE,
    ),
    "Object": (Operator("is", "is", _element, hint="JSON"), *_THERE),
    "Bytes": _THERE,
    "File": _THERE,
}


def operators(field: FieldType) -> tuple[Operator, ...]:
    """What can be asked of a field of this type."""
    return _OPERATORS[field.kind]


def read_value(field: FieldType, text: str) -> Json:
    """The value of a field's type that somebody has entered as text. Raises ``BadValue``."""
    try:
        match field.kind:
            case "Number":
                return read_number(text)
            case "Date":
                return date(normalise_date(text.strip()))
            case "Boolean":
                return text.strip().lower() == "true"
            case "Pointer" | "Relation":
                return pointer(field.target_class or "", text.strip())
            case _:
                return text
    except ServiceError as error:
        raise BadValue(error.message) from None


def add(
    where: Mapping[str, Json], name: str, field: FieldType, operator_key: str, text: str
) -> dict[str, Json]:
    """The ``where`` with another condition. Raises ``BadValue``."""
    operator = next((one for one in operators(field) if one.key == operator_key), None)
    if operator is None:
        raise BadValue(f"{name}: a {field} can't be asked for this")
    try:
        constraint = operator.make(field, text)
    except ServiceError as error:
        raise BadValue(f"{name}: {error.message}") from None
    joined = dict(where)
    if name not in joined:
        joined[name] = constraint
        return joined
    before = joined[name]
    if _is_operators(before) and _is_operators(constraint) and not before.keys() & constraint:  # type: ignore[union-attr, operator]
        joined[name] = {**before, **constraint}  # type: ignore[dict-item]
        return joined
    others = joined.get("$and")
    joined["$and"] = [*(others if isinstance(others, list) else []), {name: constraint}]
    return joined


def _is_operators(constraint: Json) -> bool:
    return isinstance(constraint, dict) and any(key.startswith("$") for key in constraint)


@dataclass(frozen=True, slots=True)
class Condition:
    """One part of a ``where``: what it says, and the ``where`` without it as JSON."""

    text: str
    rest: str


def conditions(where: Mapping[str, Json]) -> list[Condition]:
    """The parts of a ``where`` that one can take away by themselves."""
    found = []
    for key, constraint in where.items():
        without = {name: value for name, value in where.items() if name != key}
        if key == "$and" and isinstance(constraint, list):
            for index, part in enumerate(constraint):
                others = [*constraint[:index], *constraint[index + 1 :]]
                rest = without | ({"$and": others} if others else {})
                found.append(Condition(as_text(part), as_text(rest)))
        else:
            found.append(Condition(as_text({key: constraint}), as_text(without)))
    return found


def as_text(value: Json) -> str:
    """A value as JSON on one line; nothing for an empty object."""
    return "" if value == {} else msgspec.json.encode(value).decode()


def read_where(text: str) -> dict[str, Json]:
    """The object that somebody has written as JSON. Raises ``InvalidJSON``."""
    if not text.strip():
        return {}
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidJSON(f"where: {error}") from None
    if not isinstance(decoded, dict):
        raise InvalidJSON("where: expected an object")
    return decoded


def _json_or_text(text: str) -> Json:
    try:
        decoded: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return text
    return decoded
