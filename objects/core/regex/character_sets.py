"""Sets of characters as sorted ranges of code points, and what upper and lower case mean.

The universe leaves out NUL and the halves of surrogate pairs: no stored text has them.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from functools import cache
from typing import Final, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]

UNIVERSE: Final[Ranges] = ((0x1, 0xD7FF), (0xE000, 0x10FFFF))

DIGITS: Final[Ranges] = ((0x30, 0x39),)
WORD: Final[Ranges] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Final[Ranges] = ((0x9, 0xD), (0x20, 0x20))


def union(*sets: Ranges) -> Ranges:
    """Return the union, in normal form: sorted, merged, inside of the universe."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for ranges in sets for pair in ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(
        (max(low, first), min(high, last))
        for low, high in merged
        for first, last in UNIVERSE
        if low <= last and high >= first
    )


def complement(ranges: Ranges) -> Ranges:
    """Return all characters of the universe that aren't in the (normal) set."""
    result: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        result.append((start, low - 1))
        start = high + 1
    result.append((start, 0x10FFFF))
    return union(tuple((low, high) for low, high in result if low <= high))


def fold_case(ranges: Ranges) -> Ranges:
    """Return the set, with every other spelling of its letters."""
    variants, cased = _case_table()
    added: set[int] = set()
    for low, high in ranges:
        for index in range(bisect_left(cased, low), len(cased)):
            if cased[index] > high:
                break
            added.update(variants[cased[index]])
    return union(ranges, tuple((code, code) for code in added))


@cache
def _case_table() -> tuple[dict[int, frozenset[int]], list[int]]:
    """For each letter with several spellings, all of them; and those letters, sorted."""
    groups: dict[str, set[int]] = {}
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        folded = letter.casefold()
        if len(folded) != 1:
            folded = letter.lower()
        if folded != letter and len(folded) == 1:
            groups.setdefault(folded, {ord(folded)}).add(code)
    variants = {code: frozenset(group) for group in groups.values() for code in group}
    return variants, sorted(variants)
