"""An index of intervals, searched by a value that they contain."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

_FEW: Final = 32

S = TypeVar("S", bound=Hashable)


class Intervals(Generic[S]):
    """Items, each with an interval, ends included. An end that is None is open.

    All ends have one type, so that any two can be compared. ``containing`` may also return an item
    for an earlier interval, if it was added again; the caller has to check the item's own.
    """

    def __init__(self) -> None:
        self._ends: dict[S, tuple[Any, Any]] = {}
        # Items added since the lists below were sorted, and the number of removed ones.
        self._unsorted: dict[S, tuple[Any, Any]] = {}
        self._removed = 0
        self._open_above: tuple[list[Any], list[S]] = ([], [])
        self._open_below: tuple[list[Any], list[S]] = ([], [])
        self._bounded: tuple[list[Any], list[S]] = ([], [])
        # The highest upper end below each node of a binary tree over ``_bounded``, or None.
        self._highest: list[Any] = [None, None]

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[S]:
        return iter(self._ends)

    def add(self, item: S, low: Any, high: Any) -> None:
        """Add an item with this interval."""
        self._ends[item] = self._unsorted[item] = (low, high)

    def remove(self, item: S) -> None:
        """Remove an item."""
        del self._ends[item]
        if self._unsorted.pop(item, None) is None:
            self._removed += 1

    def containing(self, value: Any) -> list[S]:
        """Return the items whose interval contains the value."""
        ordered = len(self._ends) - len(self._unsorted)
        if len(self._unsorted) > _FEW + ordered // 8 or self._removed > _FEW + ordered // 2:
            self._sort()
        matches = [
            item
            for item, (low, high) in self._unsorted.items()
            if (low is None or low <= value) and (high is None or value <= high)
        ]
        lows, items = self._open_above
        matches += items[: bisect_right(lows, value)]
        highs, items = self._open_below
        matches += items[bisect_left(highs, value) :]
        lows, items = self._bounded
        matches += [
            items[place] for place in self._places_reaching(bisect_right(lows, value), value)
        ]
        return [item for item in matches if item in self._ends] if self._removed else matches

    def _places_reaching(self, end: int, value: Any) -> list[int]:
        """Return the places before ``end`` whose upper end is at least the value."""
        highest, places = self._highest, []
        pending = [(1, 0, len(highest) // 2)]
        while pending:
            node, first, size = pending.pop()
            top = highest[node]
            if first >= end or top is None or top < value:
                continue
            if size == 1:
                places.append(first)
            else:
                half = size // 2
                pending.append((2 * node, first, half))
                pending.append((2 * node + 1, first + half, half))
        return places

    def _sort(self) -> None:
        self._unsorted, self._removed = {}, 0
        ends = self._ends.items()
        self._open_above = _ordered((low, item) for item, (low, high) in ends if high is None)
        self._open_below = _ordered(
            (high, item) for item, (low, high) in ends if low is None and high is not None
        )
        self._bounded = _ordered(
            (low, item) for item, (low, high) in ends if low is not None and high is not None
        )
        size = 1
        while size < len(self._bounded[1]):
            size *= 2
        highest = [None] * size + [self._ends[item][1] for item in self._bounded[1]]
        highest += [None] * (2 * size - len(highest))
        for node in range(size - 1, 0, -1):
            left, right = highest[2 * node], highest[2 * node + 1]
            highest[node] = left if right is None or (left is not None and left > right) else right
        self._highest = highest


def _ordered(pairs: Iterator[tuple[Any, S]]) -> tuple[list[Any], list[S]]:
    ordered = sorted(pairs, key=lambda pair: pair[0])
    return [end for end, _ in ordered], [item for _, item in ordered]
