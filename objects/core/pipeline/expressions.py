"""Expressions of the aggregation pipeline: ``"$price"``, ``{"$add": ["$price", 1]}``.

Nodes are frozen and checked. An operator is one class in ``objects.core.pipeline.operators``,
derived from ``Operator``: its names, its operands and its line of documentation. Its SQL is one
class in ``objects.sql.pipeline.operators``, tested against ``tests.oracles.expressions``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from objects.core.pipeline.bounds import Bound
from objects.core.pipeline.paths import Path

MANY: Final = 50
"""The most operands of an operator."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value."""

    value: Json


@dataclass(frozen=True, slots=True)
class Field:
    """The value at a path; without steps, the whole document."""

    path: Path


@dataclass(frozen=True, slots=True)
class Items:
    """An array of values; a missing one is null."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """An object; what is missing is left out."""

    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """An operator, by its name, and its operands."""

    name: str
    operands: tuple[Expression, ...]


Expression: TypeAlias = Literal | Field | Items | Document | Call


@dataclass(frozen=True, slots=True)
class Operand:
    """What a client wrote after an operator's name, and where."""

    json: Json
    place: str
    depth: int
    parse: Callable[[Json, str, int], Expression]
    """Parses an expression, by its JSON, place and depth."""

    def expression(self, json: Json, place: str) -> Expression:
        """Return an expression inside the operand. Raises ``InvalidQuery``."""
        return self.parse(json, place, self.depth + 1)

    def expressions(
        self, items: Sequence[Json], place: str | None = None
    ) -> tuple[Expression, ...]:
        """Return the expressions of an array inside the operand. Raises ``InvalidQuery``."""
        place = self.place if place is None else place
        return tuple(self.expression(item, f"{place}.{index}") for index, item in enumerate(items))

    def items(self) -> list[Json]:
        """Return the operands: those of an array, or the one."""
        return self.json if isinstance(self.json, list) else [self.json]


class Operator:
    """An operator of expressions. Subclasses are never instantiated: calls are ``Call`` nodes."""

    names: ClassVar[tuple[str, ...]] = ()
    """Its names; several for operators that differ in one detail."""
    operands: ClassVar[tuple[int, int]] = (1, 1)
    """The fewest and the most operands, for operators with the ordinary form."""
    largest: ClassVar[int] = 64
    """The most bytes of its value, unless ``bound`` is overridden."""
    summary: ClassVar[str] = ""
    """What it means, in Markdown; for the table in docs/aggregation.md."""

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        """Return the node of the operator under this name. Raises ``InvalidQuery``."""
        items = operand.items()
        fewest, most = cls.operands
        if not fewest <= len(items) <= most:
            expected = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise InvalidQuery(f"{operand.place}: expected {expected} operands, found {len(items)}")
        return Call(name, operand.expressions(items))

    @classmethod
    def bound(cls, operands: Sequence[Bound]) -> Bound:
        """Return how large its value may be, by the bounds of its operands."""
        return Bound(constant=cls.largest)

    @classmethod
    def weight(cls, operands: int) -> int:
        """Return how many times the size of its value PostgreSQL takes to compute it."""
        return 1


class PartOperator(Operator):
    """An operator whose value is no larger than its first operand."""

    @classmethod
    def bound(cls, operands: Sequence[Bound]) -> Bound:
        return operands[0]
