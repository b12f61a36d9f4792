"""Constraints on one field and one value: ``$eq``, ``$ne``, ``$lt`` and so on, ``$exists``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

from backend.kernel.errors import InvalidJSON
from backend.kernel.json_types import Json
from objects.core.query.filters import ORDERED, Filter
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
from objects.core.query.operators.equality import equality
from objects.core.query.paths import Path
from objects.core.values import FieldKind, kind, number_key

Comparison: TypeAlias = Literal["lt", "lte", "gt", "gte"]

_OPTIONAL: Final[tuple[FieldKind, ...]] = tuple(
    field_kind for field_kind in get_args(FieldKind) if field_kind != "Relation"
)
_BOOLEAN: Final[tuple[FieldKind, ...]] = ("Boolean",)


@dataclass(frozen=True, slots=True)
class Equals(Query):
    """Some element equals the value. ``None``: no candidates, or some element is null.

    A text equals a pointer that is a field's value and has it as its object id. ``None`` equals no
    relation.
    """

    names = ("$eq",)
    usage = "`value`, `$eq`"
    summary = (
        "a list field: whether it has such an element; a pointer: also by its object id alone;"
        " `null`: missing or null, but no relation"
    )
    filters = (
        Filter("is", "is", ("String", "Number", "Date"), lambda entry: entry.value),
        Filter("is", "is", ("Pointer",), lambda entry: entry.value, hint="an object id"),
        Filter(
            "is", "has the member", ("Relation",), lambda entry: entry.value, hint="an object id"
        ),
        Filter("is", "is", ("Object",), lambda entry: entry.json, hint="JSON"),
        Filter("contains", "contains", ("Array",), lambda entry: entry.json, hint="text, or JSON"),
        Filter("true", "is true", _BOOLEAN, lambda _entry: True, takes_value=False),
        Filter("false", "is false", _BOOLEAN, lambda _entry: False, takes_value=False),
    )

    path: Path
    value: Json

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        return cls(operand.path, parser.value(operand.path, operand.value, operand.place))

    def predicate(self, matching: Matching) -> Predicate:
        is_equal = matching.some_equal(self.path, equality(self.value))
        if self.value is not None:
            return is_equal
        is_missing = matching.is_missing(self.path)
        return lambda obj: is_missing(obj) or is_equal(obj)

    def uses(self) -> Uses:
        is_plain = len(self.path) == 1 and self.value is not None
        return ((self.path[0], "equality" if is_plain else "filter"),)

    def required_values(self) -> tuple[Path, Sequence[Json]] | None:
        return self.path, (self.value,)


@dataclass(frozen=True, slots=True)
class NotEquals(Query):
    """Exactly the objects that ``Equals`` leaves out."""

    names = ("$ne",)
    usage = "`$ne`"
    summary = "the objects that `$eq` leaves out"
    filters = (
        Filter(
            "isNot", "is not", ("String", "Number", "Pointer"), lambda entry: {"$ne": entry.value}
        ),
        Filter("notTrue", "isn't true", _BOOLEAN, lambda _entry: {"$ne": True}, takes_value=False),
    )

    path: Path
    value: Json

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        return cls(operand.path, parser.value(operand.path, operand.value, operand.place))

    def predicate(self, matching: Matching) -> Predicate:
        return negation(Equals(self.path, self.value).predicate(matching))

    def uses(self) -> Uses:
        return filtered(self)


_COMPARISONS: Final[Mapping[str, Comparison]] = {
    "$lt": "lt",
    "$lte": "lte",
    "$gt": "gt",
    "$gte": "gte",
}
_COMPARABLE: Final = frozenset({"Number", "String", "Date", "Boolean"})


@dataclass(frozen=True, slots=True)
class Compare(Query):
    """Some element of the operand's kind (Number, String, Date, Boolean) compares so.

    Strings compare by code point, Dates by time, false is before true.
    """

    names = tuple(_COMPARISONS)
    usage = "`$lt`, `$lte`, `$gt`, `$gte`"
    summary = (
        "numbers, texts by code point, dates, booleans; only with values of the same type."
        ' The operand for Date fields can also be `{"$relativeTime": "2 days ago"}`'
    )
    filters = (
        Filter("lt", "<", ORDERED, lambda entry: {"$lt": entry.value}),
        Filter("lte", "≤", ORDERED, lambda entry: {"$lte": entry.value}),
        Filter("gt", ">", ORDERED, lambda entry: {"$gt": entry.value}),
        Filter("gte", "≥", ORDERED, lambda entry: {"$gte": entry.value}),
    )

    path: Path
    op: Comparison
    value: Json
    is_relative: bool = field(default=False, compare=False)
    """Whether the value was a ``$relativeTime``, which only Date fields take."""

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        path, op, place = operand.path, _COMPARISONS[operand.name], operand.place
        if isinstance(operand.value, dict) and operand.value.keys() == {"$relativeTime"}:
            moment = parser.relative_date(operand.value["$relativeTime"], place)
            return cls(path, op, moment, is_relative=True)
        value = parser.value(path, operand.value, place)
        if kind(value) not in _COMPARABLE:
            raise InvalidJSON(f"{place}: expected a number, a string, a date or a boolean")
        return cls(path, op, value)

    def predicate(self, matching: Matching) -> Predicate:
        return matching.some_element(self.path, _comparison(self.op, self.value))

    def uses(self) -> Uses:
        return ((self.path[0], "range" if len(self.path) == 1 else "filter"),)


@dataclass(frozen=True, slots=True)
class Exists(Query):
    """Some candidate is not null (``exists``), or none is."""

    names = ("$exists",)
    usage = "`$exists`"
    summary = "`true`: the field has a value other than `null`; `false`: it has none"
    filters = (
        Filter("exists", "has a value", _OPTIONAL, lambda _entry: {"$exists": True}, False),
        Filter("missing", "has no value", _OPTIONAL, lambda _entry: {"$exists": False}, False),
    )

    path: Path
    exists: bool

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        if not isinstance(operand.value, bool):
            raise InvalidJSON(f"{operand.place}: bad $exists value, should be a boolean")
        return cls(operand.path, operand.value)

    def predicate(self, matching: Matching) -> Predicate:
        values, exists = matching.candidates(self.path), self.exists
        return lambda obj: any(value is not None for value in values(obj)) is exists

    def uses(self) -> Uses:
        return filtered(self)


def _comparison(op: Comparison, value: Json) -> Callable[[Json], bool]:
    bracket = kind(value)
    bound = _comparable(value)

    def holds(other: Json) -> bool:
        if kind(other) != bracket:
            return False
        own = _comparable(other)
        if op == "lt":
            return bool(own < bound)
        if op == "lte":
            return bool(own <= bound)
        return bool(own > bound) if op == "gt" else bool(own >= bound)

    return holds


def _comparable(value: Json) -> Any:
    if isinstance(value, dict):
        return value["iso"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_key(value)
    return value
