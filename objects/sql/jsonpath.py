"""Paths and tests of values in PostgreSQL's jsonpath language.

What is made here is always sent as a parameter (``%s::jsonpath``). Keys and values of clients
stand in it as JSON strings, which is also how jsonpath spells them.

Lax mode does most of what a path means in a query: a key goes through a list to the objects in
it, and a filter looks into a list, one level deep. But a comparison would look one level deeper
still, so every test checks the type first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from backend.kernel.json_types import Json
from objects.core.query.tree import Comparison, Steps

_OPERATORS: Final = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}


def path(steps: Steps) -> str:
    """Return the candidates at a path."""
    return "$" + "".join(f".{json.dumps(step)}" for step in steps)


def filtered(steps: Steps, condition: str) -> str:
    """Return the elements at a path for which a condition holds."""
    return f"{path(steps)} ? ({condition})"


def not_null(steps: Steps) -> str:
    """Finds something if some candidate isn't null."""
    return f'{path(steps)}.type() ? (@ != "null")'


def is_simple(value: Json) -> bool:
    """Whether ``equals`` can test for this value: it isn't an object or list of any shape."""
    if isinstance(value, dict):
        return "__type" in value and value["__type"] != "Polygon"
    return not isinstance(value, list)


def equals(value: Json) -> str:
    """Return the condition: equal to a simple value."""
    if value is None:
        return '@.type() == "null"'
    if isinstance(value, bool):
        return f'@.type() == "boolean" && @ == {json.dumps(value)}'
    if isinstance(value, int | float):
        return f'@.type() == "number" && @ == {json.dumps(value)}'
    if isinstance(value, str):
        return f'@.type() == "string" && @ == {json.dumps(value)}'
    assert isinstance(value, dict)
    parts = [f"@.{json.dumps(key)} == {json.dumps(item)}" for key, item in value.items()]
    return " && ".join(['@.type() == "object"', *parts])


def equals_any(values: Sequence[Json]) -> str:
    """Return the condition: equal to one of some simple values; at least one."""
    if len(values) == 1:
        return f"({equals(values[0])})"
    # A balanced tree, as the parser and the executor of jsonpath are recursive.
    half = len(values) // 2
    return f"({equals_any(values[:half])} || {equals_any(values[half:])})"


def compares(op: Comparison, value: Json) -> str:
    """Return the condition: of the operand's kind, and before or after it."""
    sign = _OPERATORS[op]
    if isinstance(value, dict):
        return (
            '@.type() == "object" && @."__type" == "Date"'
            f' && @."iso" {sign} {json.dumps(value["iso"])}'
        )
    kind = (
        "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
    )
    return f'@.type() == "{kind}" && @ {sign} {json.dumps(value)}'


def has_type(type_name: str) -> str:
    """Return the condition: a typed value of this type."""
    return f'@.type() == "object" && @."__type" == {json.dumps(type_name)}'


IS_STRING: Final = '@.type() == "string"'


def class_is(class_name: str) -> str:
    """Return the condition: a pointer or relation to this class."""
    return f'@."className" == {json.dumps(class_name)}'
