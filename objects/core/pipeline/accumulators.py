"""Accumulators of ``$group``: what becomes of one operand over all documents of a group.

An accumulator is one class derived from ``Accumulation``; its SQL is one class in
``objects.sql.pipeline.accumulators``, tested against ``tests.oracles.pipelines``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.pipeline.expression_parser import parse_expression
from objects.core.pipeline.expressions import Expression, Literal


@dataclass(frozen=True, slots=True)
class Accumulator:
    """An accumulator, by its name, and its operand."""

    name: str
    operand: Expression


class Accumulation:
    """A kind of accumulator. Subclasses are never instantiated: nodes are ``Accumulator``."""

    names: ClassVar[tuple[str, ...]] = ()
    summary: ClassVar[str] = ""
    """What it accumulates, in Markdown; for the table in docs/aggregation.md."""

    @classmethod
    def parse(cls, name: str, operand: Json, place: str) -> Accumulator:
        """Return the node of the accumulator under this name. Raises ``InvalidQuery``."""
        return Accumulator(name, parse_expression(operand, f"{place}.{name}"))


class Sum(Accumulation):
    names = ("$sum",)
    summary = "the sum of the numbers, exact, in decimal; `{$sum: 1}` counts"


class Average(Accumulation):
    names = ("$avg",)
    summary = "the mean of the numbers as a double; null for numbers beyond 1e±140"


class Extreme(Accumulation):
    names = ("$min", "$max")
    summary = "the least value; the greatest"


class End(Accumulation):
    names = ("$first", "$last")
    summary = "the value of the first document; of the last"


class Push(Accumulation):
    names = ("$push",)
    summary = "an array of all values"


class AddToSet(Accumulation):
    names = ("$addToSet",)
    summary = "an array of the distinct values, sorted"


class Count(Accumulation):
    """A sum of ones."""

    names = ("$count",)
    summary = "how many documents: `{$count: {}}`"

    @classmethod
    def parse(cls, name: str, operand: Json, place: str) -> Accumulator:
        if operand != {}:
            raise InvalidQuery(f"{place}.$count: expected {{}}")
        return Accumulator("$sum", Literal(1))


REGISTERED: Final[tuple[type[Accumulation], ...]] = (
    *(Sum, Average, Extreme, End, Push, AddToSet),
    Count,
)
"""All accumulators, in the order of the documentation."""

ACCUMULATORS: Final[Mapping[str, type[Accumulation]]] = {
    name: accumulation for accumulation in REGISTERED for name in accumulation.names
}
"""The accumulator of each name."""


def parse_accumulator(json: Json, place: str) -> Accumulator:
    """Return the accumulator that a client wrote. Raises ``InvalidQuery`` with the place."""
    if not isinstance(json, dict) or len(json) != 1:
        raise InvalidQuery(f"{place}: expected an object with one accumulator")
    [(name, operand)] = json.items()
    accumulation = ACCUMULATORS.get(name)
    if accumulation is None:
        raise InvalidQuery(f"{place}: unknown group operator '{shown(name)}'")
    return accumulation.parse(name, operand, place)
