"""Which of many intervals a value lies in."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

_FEW: Final = 32

S = TypeVar("S", bound=Hashable)


class Intervals(Generic[S]):
    """Items, each with an interval, ends included. An end that is None is open.

    The ends are of one kind, so that any two can be compared. ``at`` may give an item that was
    added again with another interval; the caller knows the item's own.
    """

    def __init__(self) -> None:
        self._ends: dict[S, tuple[Any, Any]] = {}
        # What was added since the order below was made, and how many were removed.
        self._fresh: dict[S, tuple[Any, Any]] = {}
        self._removed = 0
        self._from: tuple[list[Any], list[S]] = ([], [])
        self._to: tuple[list[Any], list[S]] = ([], [])
        self._both: tuple[list[Any], list[S]] = ([], [])
        # The highest upper end below each node of a binary tree over ``_both``; None for nothing.
        self._highest: list[Any] = [None, None]

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[S]:
        return iter(self._ends)

    def add(self, item: S, low: Any, high: Any) -> None:
        """Keep an item with this interval."""
        self._ends[item] = self._fresh[item] = (low, high)

    def remove(self, item: S) -> None:
        """Forget an item."""
        del self._ends[item]
        if self._fresh.pop(item, None) is None:
            self._removed += 1

    def at(self, value: Any) -> list[S]:
        """The items whose interval has the value in it."""
        ordered = len(self._ends) - len(self._fresh)
        if len(self._fresh) > _FEW + ordered // 8 or self._removed > _FEW + ordered // 2:
            self._put_in_order()
        matches = [
            item
            for item, (low, high) in self._fresh.items()
            if (low is None or low <= value) and (high is None or value <= high)
        ]
        lows, items = self._from
        matches += items[: bisect_right(lows, value)]
        highs, items = self._to
        matches += items[bisect_left(highs, value) :]
        lows, items = self._both
        matches += [items[place] for place in self._reaching(bisect_right(lows, value), value)]
        return [item for item in matches if item in self._ends] if self._removed else matches

    def _reaching(self, end: int, value: Any) -> list[int]:
        """The places before ``end`` whose upper end is at least the value."""
        highest, places = self._highest, []
        waiting = [(1, 0, len(highest) // 2)]
        while waiting:
            node, first, size = waiting.pop()
            top = highest[node]
            if first >= end or top is None or top < value:
                continue
            if size == 1:
                places.append(first)
            else:
                half = size // 2
                waiting.append((2 * node, first, half))
                waiting.append((2 * node + 1, first + half, half))
        return places

    def _put_in_order(self) -> None:
        self._fresh, self._removed = {}, 0
        ends = self._ends.items()
        self._from = _ordered((low, item) for item, (low, high) in ends if high is None)
        self._to = _ordered(
            (high, item) for item, (low, high) in ends if low is None and high is not None
        )
        self._both = _ordered(
            (low, item) for item, (low, high) in ends if low is not None and high is not None
        )
        size = 1
        while size < len(self._both[1]):
            size *= 2
        highest = [None] * size + [self._ends[item][1] for item in self._both[1]]
        highest += [None] * (2 * size - len(highest))
        for node in range(size - 1, 0, -1):
            left, right = highest[2 * node], highest[2 * node + 1]
            highest[node] = left if right is None or (left is not None and left > right) else right
        self._highest = highest


def _ordered(pairs: Iterator[tuple[Any, S]]) -> tuple[list[Any], list[S]]:
    ordered = sorted(pairs, key=lambda pair: pair[0])
    return [end for end, _ in ordered], [item for _, item in ordered]
