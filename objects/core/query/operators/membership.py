"""Constraints on one field and a list of values: ``$in``, ``$nin``, ``$all``, ``$containedBy``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.kernel.errors import InvalidJSON
from backend.kernel.json_types import Json
from objects.core.query.filters import Filter
from objects.core.query.messages import parse_message
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
from objects.core.query.operators.composition import Nothing
from objects.core.query.operators.equality import value_key, value_keys
from objects.core.query.operators.text import ContainsAllRegex
from objects.core.query.paths import Object, Path, comparables


@dataclass(frozen=True, slots=True)
class In(Query):
    """``Equals`` for any of the values; nothing if there are none."""

    names = ("$in",)
    usage = "`$in`"
    summary = (
        "the objects that `$eq` finds with any of these values; a list among them stands for its"
        " elements"
    )
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
        return cls(operand.path, _values(operand, parser))

    def predicate(self, matching: Matching) -> Predicate:
        keys = value_keys(self.values)
        is_equal = matching.some_equal(self.path, lambda value: value_key(value) in keys)
        if None not in self.values:
            return is_equal
        is_missing = matching.is_missing(self.path)
        return lambda obj: is_missing(obj) or is_equal(obj)

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
        return cls(operand.path, _values(operand, parser))

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
            raise InvalidJSON(parse_message("bad $all value", place))
        if any(isinstance(item, dict) and "$regex" in item for item in values):
            return ContainsAllRegex.parse(operand, parser)
        if any(_is_unknown_operator(item) for item in values):
            return Nothing()  # no stored value has such a key
        parser.size.add_all_values(len(values), place)
        return cls(path, parser.values(path, values, place, "bad $all value"))

    @classmethod
    def nodes(cls) -> tuple[type[Query], ...]:
        return (cls, ContainsAllRegex)

    def predicate(self, matching: Matching) -> Predicate:
        keys, members, path = value_keys(self.values), matching.lookup.members, self.path
        # ``$all: [null]`` matches a missing field.
        of_nothing = value_keys([None])

        is_missing = matching.is_missing(path)

        def contains(obj: Object) -> bool:
            if is_missing(obj):
                return keys == of_nothing
            return keys <= value_keys(comparables(obj, path, members))

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


def _is_unknown_operator(item: object) -> bool:
    return isinstance(item, dict) and len(item) == 1 and str(next(iter(item))).startswith("$")


def _values(operand: Operand, parser: Parser) -> tuple[Json, ...]:
    """Return the values of ``$in`` and ``$nin``, lists replaced by their elements."""
    value = operand.value
    if isinstance(value, list) and any(isinstance(item, list) for item in value):
        value = [part for item in value for part in (item if isinstance(item, list) else [item])]
    return parser.values(operand.path, value, operand.place, f"bad {operand.name} value")
