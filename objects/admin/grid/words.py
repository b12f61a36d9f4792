"""Conditions of a ``where`` in words, as the chips above the grid show them.

A condition that has no words is shown as JSON; nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from backend.kernel.json_types import Json
from objects.admin.browser.cells import value_cell
from objects.admin.browser.labels import Labels

_OPERATORS: Final[Mapping[str, str]] = {
    "$eq": "is",
    "$ne": "is not",
    "$lt": "<",
    "$lte": "≤",
    "$gt": ">",
    "$gte": "≥",
}
_LISTS: Final[Mapping[str, str]] = {
    "$in": "is one of",
    "$nin": "is none of",
    "$all": "contains all of",
}
_MOST_VALUES: Final = 5


def in_words(name: str, constraint: Json, labels: Labels) -> str:
    """Return a condition on a field in words: ``score > 5 and < 9``."""
    if not isinstance(constraint, dict) or not any(key.startswith("$") for key in constraint):
        return f"{name} is {_value(constraint, labels)}"
    parts = [_part(key, constraint, labels) for key in constraint if key not in _COMPANIONS]
    if any(part is None for part in parts):
        return f"{name}: {_json(constraint)}"
    return f"{name} {' and '.join(filter(None, parts))}"


_COMPANIONS: Final = ("$options", "$maxDistanceInKilometers")


def _part(key: str, constraint: Mapping[str, Json], labels: Labels) -> str | None:
    """One operator with its operand; None if there are no words for it."""
    operand = constraint[key]
    if key in _OPERATORS:
        return f"{_OPERATORS[key]} {_value(operand, labels)}"
    if key in _LISTS and isinstance(operand, list):
        return f"{_LISTS[key]} {_values(operand, labels)}"
    match key:
        case "$exists":
            return "has a value" if operand else "has no value"
        case "$regex" if isinstance(operand, str):
            return _pattern(operand, constraint.get("$options"))
        case "$text":
            return _words(operand)
        case "$nearSphere":
            near = f"is near {_value(operand, labels)}"
            distance = constraint.get("$maxDistanceInKilometers")
            return near if distance is None else f"{near}, within {_json(distance)} km"
    return None


def _pattern(pattern: str, options: Json) -> str:
    begins = pattern.startswith("^")
    text = re.sub(r"\\(.)", r"\1", pattern.removeprefix("^"), flags=re.DOTALL)
    if re.escape(text) != pattern.removeprefix("^") or options not in (None, "", "i"):
        return f"matches the expression {pattern}"
    kind = "begins with" if begins else "contains"
    return f"{kind} {_quoted(text)}{', in any case' if options else ''}"


def _words(operand: Json) -> str | None:
    search = operand.get("$search") if isinstance(operand, dict) else None
    term = search.get("$term") if isinstance(search, dict) else None
    return f"has the words {_quoted(term)}" if isinstance(term, str) else None


def _values(values: list[Json], labels: Labels) -> str:
    texts = [_value(value, labels) for value in values[:_MOST_VALUES]]
    if len(values) > _MOST_VALUES:
        texts.append(f"{len(values) - _MOST_VALUES} more")
    return ", ".join(texts) or "nothing"


def _value(value: Json, labels: Labels) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict) and value.get("__type") == "Pointer":
        key = str(value.get("className")), str(value.get("objectId"))
        return labels.get(key) or key[1]
    if isinstance(value, dict) and "__type" not in value:
        return _json(value)
    return value_cell(value).text


def _quoted(text: str) -> str:
    return f"“{text}”"


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def pointers(where: Json) -> Iterator[Json]:
    """Yield the pointers in a ``where``, whose labels ``in_words`` shows."""
    if isinstance(where, dict):
        if where.get("__type") == "Pointer":
            yield where
        else:
            for value in where.values():
                yield from pointers(value)
    elif isinstance(where, list):
        for value in where:
            yield from pointers(value)
