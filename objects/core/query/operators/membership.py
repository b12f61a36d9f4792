"""Constraints on one field and a list of values: ``$in``, ``$nin``, ``$all``, ``$containedBy``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.kernel.errors import InvalidJSON
from backend.kernel.json_types import Json
from objects.core.query.filters import Filter
from objects.core.query.node import (
    Matching,
    Operand,
    Parser,
    Predicate,
    Query,
    Uses,
    filtered,
    negation,
)
from objects.core.query.operators.equality import value_key, value_keys
from objects.core.query.operators.text import ContainsAllRegex
from objects.core.query.paths import Object, Path, candidates, elements


@dataclass(frozen=True, slots=True)
class In(Query):
    """``Equals`` for any of the values; nothing if there are none."""

    names = ("$in",)
    usage = "`$in`"
    summary = "the objects that `$eq` finds with any of these values"
    filters = (
        Filter(
            "in",
            "is one of a, b, c",
            ("String", "Number", "Pointer"),
            lambda entry: {"$in": entry.values},
        ),
    )

    path: Path
    values: tuple[Json, ...]

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        path, place = operand.path, operand.place
        return cls(path, parser.values(path, operand.value, place, "bad $in value"))

    def predicate(self, matching: Matching) -> Predicate:
        keys = value_keys(self.values)
        is_equal = matching.some_element(self.path, lambda value: value_key(value) in keys)
        if None not in self.values:
            return is_equal
        values = matching.candidates(self.path)
        return lambda obj: not values(obj) or is_equal(obj)

    def uses(self) -> Uses:
        return filtered(self)

    def required_values(self) -> tuple[Path, Sequence[Json]] | None:
        return self.path, self.values


@dataclass(frozen=True, slots=True)
class NotIn(Query):
    """Exactly the objects that ``In`` leaves out."""

    names = ("$nin",)
    usage = "`$nin`"
    summary = "the objects that `$in` leaves out"

    path: Path
    values: tuple[Json, ...]

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        path, place = operand.path, operand.place
        return cls(path, parser.values(path, operand.value, place, "bad $nin value"))

    def predicate(self, matching: Matching) -> Predicate:
        return negation(In(self.path, self.values).predicate(matching))

    def uses(self) -> Uses:
        return filtered(self)


@dataclass(frozen=True, slots=True)
class ContainsAll(Query):
    """``Equals`` for each of the values; nothing if there are none."""

    names = ("$all",)
    usage = "`$all`"
    summary = (
        "the objects that `$eq` finds with each of these values, or `$regex` with each of these"
        ' patterns: `[{"$regex": …}]`'
    )
    filters = (
        Filter(
            "all",
            "contains all of",
            ("Array",),
            lambda entry: {"$all": values if isinstance(values := entry.json, list) else [values]},
            hint='["a", "b"]',
        ),
    )

    path: Path
    values: tuple[Json, ...]

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        path, values, place = operand.path, operand.value, operand.place
        if not isinstance(values, list):
            raise InvalidJSON(f"{place}: bad $all value")
        if any(isinstance(item, dict) and "$regex" in item for item in values):
            return ContainsAllRegex.parse(operand, parser)
        parser.size.add_all_values(len(values), place)
        return cls(path, parser.values(path, values, place, "bad $all value"))

    @classmethod
    def nodes(cls) -> tuple[type[Query], ...]:
        return (cls, ContainsAllRegex)

    def predicate(self, matching: Matching) -> Predicate:
        keys, members, path = value_keys(self.values), matching.lookup.members, self.path
        # null is what is missing, too.
        of_nothing = value_keys([None])

        def contains(obj: Object) -> bool:
            if not candidates(obj, path, members):
                return keys == of_nothing
            return keys <= value_keys(elements(obj, path, members))

        return lambda obj: bool(keys) and contains(obj)

    def uses(self) -> Uses:
        return filtered(self)

    def required_values(self) -> tuple[Path, Sequence[Json]] | None:
        return self.path, self.values[:1]


@dataclass(frozen=True, slots=True)
class ContainedBy(Query):
    """Some candidate is a list, and every element of it equals one of the values."""

    names = ("$containedBy",)
    usage = "`$containedBy`"
    summary = "lists all of whose elements are among these values"

    path: Path
    values: tuple[Json, ...]

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        message = "bad $containedBy: should be an array"
        path = operand.path
        return cls(path, parser.values(path, operand.value, operand.place, message))

    def predicate(self, matching: Matching) -> Predicate:
        values = matching.candidates(self.path)
        keys = value_keys(self.values)

        def is_subset(value: Json) -> bool:
            return isinstance(value, list) and all(value_key(item) in keys for item in value)

        return lambda obj: any(map(is_subset, values(obj)))

    def uses(self) -> Uses:
        return filtered(self)
