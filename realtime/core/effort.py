"""What it takes to keep a query and to match an object, told before it is done.

A comparison looks at every element of the lists at its path, so a query with many comparisons and
an object with long lists take their product, at a few tenths of a microsecond each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from objects.core.query.tree import Query, walk

QUICK: Final = 20_000
"""So much, some milliseconds, may be done in the event loop."""
MOST: Final = 5_000_000
"""More, some seconds, isn't done at all."""

_CHARACTERS: Final = 64  # of a text, that take as long as an element
_ALWAYS: Final = 1024
_CHARACTER: Final = 4
_VALUE: Final = 160
"""Bytes of a subscription: of each, of a character and of a value of its JSON. Queries are kept
as they came, parsed, as a key and in the index."""


def memory_of(text: str) -> int:
    """About the bytes that a subscription takes, by the JSON that asks for it."""
    values = sum(map(text.count, ",[{:"))
    return _ALWAYS + _CHARACTER * len(text) + _VALUE * values


def comparisons(query: Query) -> int:
    """How many comparisons the query makes with an element."""
    return sum(node.comparisons() for node in walk(query))


def extent(image: Mapping[str, Any]) -> int:
    """How many elements and fields an object has, at every depth; a long text counts as several."""
    count = 0
    open_values: list[Any] = [image]
    while open_values:
        value = open_values.pop()
        count += 1
        if type(value) is dict:
            open_values += value.values()
        elif type(value) is list:
            open_values += value
        elif type(value) is str:
            count += len(value) // _CHARACTERS
    return count
