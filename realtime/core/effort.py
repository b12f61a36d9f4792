"""Estimates of the memory of a query and of the time to match it with an object.

A comparison examines every element of the lists at its path, so the time to match a query with
many comparisons against an object with long lists is their product, at a few tenths of a
microsecond each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from objects.core.query.tree import Query, walk

QUICK: Final = 20_000
"""The most (some milliseconds) that may run in the event loop."""
MOST: Final = 5_000_000
"""The most (some seconds) that is matched at all."""

_CHARACTERS: Final = 64  # of a text, that take as long as an element
_ALWAYS: Final = 1024
_CHARACTER: Final = 4
_VALUE: Final = 160
"""Bytes of a subscription: fixed, for each character and for each value of its JSON. A query is
stored as received, parsed, as a key and in the index."""


def memory_of(text: str) -> int:
    """Estimate the bytes that a subscription takes, from the JSON of its request."""
    values = sum(map(text.count, ",[{:"))
    return _ALWAYS + _CHARACTER * len(text) + _VALUE * values


def comparisons(query: Query) -> int:
    """Return the number of comparisons that the query makes with an element."""
    return sum(node.comparisons() for node in walk(query))


def extent(image: Mapping[str, Any]) -> int:
    """Count an object's elements and fields at every depth; a long text counts as several."""
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
