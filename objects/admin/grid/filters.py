"""The filter builder: conditions chosen from forms, as parts of a ``where``.

The ``where`` itself is all that a page keeps. ``operators`` lists the filters of a field,
``add`` adds a condition to a ``where``, ``conditions`` splits a ``where`` into parts that can be
shown and removed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, get_args

import msgspec

from backend.kernel.errors import InvalidJSON, ServiceError
from backend.kernel.json_types import Json
from objects.admin.browser.labels import Labels
from objects.admin.grid.words import in_words
from objects.admin.values import read_number, read_point
from objects.core.query.filters import Filter
from objects.core.query.operators.registry import REGISTERED
from objects.core.schema.definition import FieldType
from objects.core.values import FieldKind, date, normalise_date, pointer


class BadValue(InvalidJSON):
    """What was entered beside an operator isn't a value that it takes."""


@dataclass(frozen=True, slots=True)
class EnteredText:
    """What was entered beside a filter (``objects.core.query.filters.Entry``)."""

    field: FieldType
    text: str

    @property
    def pattern(self) -> str:
        return re.escape(self.text)

    @property
    def value(self) -> Json:
        return read_value(self.field, self.text)

    @property
    def values(self) -> list[Json]:
        parts = map(str.strip, self.text.split(","))
        return [read_value(self.field, part) for part in parts if part]

    @property
    def json(self) -> Json:
        return _json_or_text(self.text)

    @property
    def point(self) -> Json:
        parts = self.text.split(",")
        if len(parts) != 2:
            raise BadValue("expected latitude, longitude")
        return read_point(parts[0], parts[1])

    @property
    def circle(self) -> tuple[Json, Json]:
        parts = self.text.split(",")
        if len(parts) != 3:
            raise BadValue("expected latitude, longitude, kilometres")
        return read_point(parts[0], parts[1]), read_number(parts[2])


_ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "String": ("is", "isNot", "begins", "contains", "words", "regex", "in"),
    "Number": ("is", "isNot", "lt", "lte", "gt", "gte", "in"),
    "Date": ("gte", "gt", "lte", "lt", "is"),
}
"""The first filters of a kind of field, by key; the others follow as the operators list them."""
_LAST: Final = ("exists", "missing")


def _offered(kind: str) -> tuple[Filter, ...]:
    order = _ORDERS.get(kind, ())

    def rank(entry: Filter) -> int:
        if entry.key in order:
            return order.index(entry.key)
        return len(order) + (entry.key in _LAST)

    filters = (entry for operator in REGISTERED for entry in operator.filters)
    return tuple(sorted((entry for entry in filters if kind in entry.kinds), key=rank))


_FILTERS: Final[Mapping[str, tuple[Filter, ...]]] = {
    kind: _offered(kind) for kind in get_args(FieldKind)
}


def operators(field: FieldType) -> tuple[Filter, ...]:
    """The filters for a field of this type."""
    return _FILTERS[field.kind]


def read_value(field: FieldType, text: str) -> Json:
    """Return the value of a field's type from entered text. Raises ``BadValue``."""
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
    operator = next(
        (candidate for candidate in operators(field) if candidate.key == operator_key), None
    )
    if operator is None:
        raise BadValue(f"{name}: a {field} can't be asked for this")
    try:
        constraint = operator.constraint(EnteredText(field, text))
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
    conjuncts = joined.get("$and")
    joined["$and"] = [*(conjuncts if isinstance(conjuncts, list) else []), {name: constraint}]
    return joined


def _is_operators(constraint: Json) -> bool:
    return isinstance(constraint, dict) and any(key.startswith("$") for key in constraint)


@dataclass(frozen=True, slots=True)
class Condition:
    """A part of a ``where`` in words, and the ``where`` without it as JSON."""

    text: str
    remaining: str


def conditions(where: Mapping[str, Json], labels: Labels) -> list[Condition]:
    """Return the parts of a ``where`` that can be removed separately."""
    parts = []
    for key, constraint in where.items():
        without = {name: value for name, value in where.items() if name != key}
        if key == "$and" and isinstance(constraint, list):
            for index, part in enumerate(constraint):
                remaining_parts = [*constraint[:index], *constraint[index + 1 :]]
                remaining = without | ({"$and": remaining_parts} if remaining_parts else {})
                parts.append(Condition(_words(part, labels), as_text(remaining)))
        else:
            parts.append(Condition(_words({key: constraint}, labels), as_text(without)))
    return parts


def _words(part: Json, labels: Labels) -> str:
    if isinstance(part, dict) and not any(key.startswith("$") for key in part):
        return " and ".join(in_words(name, part[name], labels) for name in part)
    return as_text(part)


def as_text(value: Json) -> str:
    """A value as JSON on one line; nothing for an empty object."""
    return "" if value == {} else msgspec.json.encode(value).decode()


def read_where(text: str) -> dict[str, Json]:
    """Return an object from entered JSON. Raises ``InvalidJSON``."""
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
