"""Constraints of constraints: ``$and``, ``$or``, ``$nor``, everything and nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from backend.kernel.errors import InvalidQuery
from objects.core.query.messages import parse_message
from objects.core.query.node import (
    Clause,
    Matching,
    Parser,
    Predicate,
    Query,
    Uses,
    filtered,
    walk,
)


@dataclass(frozen=True, slots=True)
class Everything(Query):
    """Every object."""

    def predicate(self, matching: Matching) -> Predicate:
        return lambda _obj: True


@dataclass(frozen=True, slots=True)
class Nothing(Query):
    """No object."""

    def predicate(self, matching: Matching) -> Predicate:
        return lambda _obj: False


@dataclass(frozen=True, slots=True)
class AllOf(Query):
    """Objects that every part matches; all objects if there is no part."""

    clauses = ("$and",)
    usage = "`$and`"
    summary = "objects that all of these queries match"

    parts: tuple[Query, ...]

    @classmethod
    def parse_clause(cls, clause: Clause, parser: Parser) -> Query:
        return all_of(*_parsed(clause, parser, "an array value"))

    def predicate(self, matching: Matching) -> Predicate:
        parts = [part.predicate(matching) for part in self.parts]
        return lambda obj: all(part(obj) for part in parts)

    def children(self) -> tuple[Query, ...]:
        return self.parts

    def uses(self) -> Uses:
        return filtered(self)

    def comparisons(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class AnyOf(Query):
    """Objects that some part matches; none if there is no part."""

    clauses = ("$or",)
    usage = "`$or`"
    summary = "objects that some of these queries match"

    parts: tuple[Query, ...]

    @classmethod
    def parse_clause(cls, clause: Clause, parser: Parser) -> Query:
        return cls(tuple(_parsed(clause, parser, "an array value")))

    def predicate(self, matching: Matching) -> Predicate:
        parts = [part.predicate(matching) for part in self.parts]
        return lambda obj: any(part(obj) for part in parts)

    def children(self) -> tuple[Query, ...]:
        return self.parts

    def uses(self) -> Uses:
        ranges: Uses = tuple(
            (name, "alternative")
            for node in walk(self)
            if not node.children()
            for name, use in node.uses()
            if use == "range"
        )
        return ranges + filtered(self)

    def comparisons(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class NoneOf(Query):
    """Objects that no part matches."""

    clauses = ("$nor",)
    usage = "`$nor`"
    summary = "objects that none of these queries matches"

    parts: tuple[Query, ...]

    @classmethod
    def parse_clause(cls, clause: Clause, parser: Parser) -> Query:
        return cls(tuple(_parsed(clause, parser, "an array of at least 1 value")))

    def predicate(self, matching: Matching) -> Predicate:
        parts = [part.predicate(matching) for part in self.parts]
        return lambda obj: not any(part(obj) for part in parts)

    def children(self) -> tuple[Query, ...]:
        return self.parts

    def uses(self) -> Uses:
        return filtered(self)

    def comparisons(self) -> int:
        return 0


def all_of(*parts: Query) -> Query:
    """Return the conjunction, flattened, without what is always true."""
    flat: list[Query] = []
    for part in parts:
        if isinstance(part, AllOf):
            flat.extend(part.parts)
        elif isinstance(part, Nothing):
            return part
        elif not isinstance(part, Everything):
            flat.append(part)
    if not flat:
        return Everything()
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def _parsed(clause: Clause, parser: Parser, expected: str) -> Iterator[Query]:
    name, value = clause.name, clause.value
    if not isinstance(value, list) or not value:
        raise InvalidQuery(
            parse_message(f"Bad {name} format - use {expected}.", f"{clause.place}.{name}")
        )
    for index, part in enumerate(value):
        place = f"{clause.place}.{name}.{index}"
        if not isinstance(part, dict):
            raise InvalidQuery(f"Bad {name} format - expected objects ({place})")
        yield parser.where(part, place, clause.depth + 1)
