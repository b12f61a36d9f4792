"""Upper bounds of sizes, in bytes, that depend on a document whose size isn't known yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

WHOLE: Final = ""
"""Stands for the whole document among the names of fields."""


@dataclass(frozen=True, slots=True)
class Bound:
    """At most so many bytes: a number of copies of each field, and a constant."""

    copies: Mapping[str, int] = field(default_factory=dict)
    constant: int = 0

    def __add__(self, other: Bound) -> Bound:
        return total((self, other))

    def __mul__(self, factor: int) -> Bound:
        copies = {name: number * factor for name, number in self.copies.items()}
        return Bound(copies, self.constant * factor)

    @property
    def factor(self) -> int:
        """Copies of the whole document that are at least as large as the copies of fields.

        Fields are parts of one document: a copy of each is one of the document.
        """
        whole = self.copies.get(WHOLE, 0)
        return whole + max((n for name, n in self.copies.items() if name != WHOLE), default=0)


def documents(number: int) -> Bound:
    """Return the bound of so many copies of the whole document."""
    return Bound({WHOLE: number})


def total(bounds: Iterable[Bound]) -> Bound:
    """Return the bound of values together."""
    copies: Counter[str] = Counter()
    constant = 0
    for bound in bounds:
        copies.update(bound.copies)
        constant += bound.constant
    return Bound(copies, constant)


def largest(bounds: Iterable[Bound]) -> Bound:
    """Return the bound of any of the values."""
    copies: Counter[str] = Counter()
    constant = 0
    for bound in bounds:
        copies |= Counter(bound.copies)
        constant = max(constant, bound.constant)
    return Bound(copies, constant)
