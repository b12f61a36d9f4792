"""Constraints on objects of other classes: ``$inQuery``, ``$select``, ``$relatedTo``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from backend.kernel.errors import InvalidQuery
from backend.kernel.texts.shown import shown
from objects.core import names as naming
from objects.core.names import ClassName, FieldName, ObjectId
from objects.core.query.messages import parse_message
from objects.core.query.node import (
    Clause,
    Matching,
    Operand,
    Parser,
    Predicate,
    Query,
    SubQuery,
    Uses,
    filtered,
    negation,
)
from objects.core.query.operators.composition import Nothing
from objects.core.query.paths import Object, Path, candidates, comparables, elements
from objects.core.values import equal, is_pointer, normalise, pointer

MAX_SUBQUERY_SKIP: Final = 2**31 - 1

# The keys that SDKs send. Those after redirectClassNameForKey don't affect the result.
_SUBQUERY_KEYS: Final = frozenset(
    {
        "className",
        "where",
        "limit",
        "skip",
        "order",
        "redirectClassNameForKey",
        "keys",
        "excludeKeys",
        "include",
        "includeAll",
        "count",
        "hint",
        "explain",
        "comment",
        "watch",
        "readPreference",
        "includeReadPreference",
        "subqueryReadPreference",
    }
)


@dataclass(frozen=True, slots=True)
class InQuery(Query):
    """Some element is a pointer to an object that the sub-query finds (or not, ``negated``)."""

    names = ("$inQuery", "$notInQuery")
    usage = "`$inQuery`, `$notInQuery`"
    summary = "pointers to objects that a query of another class finds, under the caller's rights"

    path: Path
    query: SubQuery
    negated: bool = False

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        query = _subquery(operand.value, operand.name, operand.place, operand.depth, parser)
        return cls(operand.path, query, negated=operand.name == "$notInQuery")

    def predicate(self, matching: Matching) -> Predicate:
        members, find = matching.lookup.members, matching.lookup.find
        query, path = self.query, self.path

        def points_in(obj: Object) -> bool:
            ids = {
                value["objectId"]
                for value in elements(obj, path, members)
                if isinstance(value, dict)
                and is_pointer(value)
                and value["className"] == query.class_name
            }
            return bool(ids) and any(other["objectId"] in ids for other in find(query))

        return negation(points_in) if self.negated else points_in

    def uses(self) -> Uses:
        return filtered(self)


@dataclass(frozen=True, slots=True)
class Select(Query):
    """Some element equals a value that some object of the sub-query has at ``key``.

    A list at ``key`` stands for its elements. Null and missing are no values. ``negated`` gives
    exactly the other objects.
    """

    names = ("$select", "$dontSelect")
    usage = "`$select`, `$dontSelect`"
    summary = (
        "values that objects of another class have at a key, or in a list there, under the caller's"
        " rights"
    )

    path: Path
    query: SubQuery
    key: Path
    negated: bool = False

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        name, value, place = operand.name, operand.value, operand.place
        if (
            not isinstance(value, dict)
            or set(value) != {"query", "key"}
            or not isinstance(value["key"], str)
        ):
            raise InvalidQuery(parse_message(f"improper usage of {name}", place))
        query = _subquery(value["query"], name, f"{place}.query", operand.depth, parser)
        key = parser.path(value["key"])
        if key[0] == "ACL":
            raise InvalidQuery("Cannot query on ACL.")
        return cls(operand.path, query, key, negated=name == "$dontSelect")

    def predicate(self, matching: Matching) -> Predicate:
        members, find = matching.lookup.members, matching.lookup.find

        def has_value(obj: Object) -> bool:
            own = list(comparables(obj, self.path, members))
            return any(
                value is not None and equal(value, element)
                for other in find(self.query)
                for candidate in candidates(other, self.key)
                for value in (candidate if isinstance(candidate, list) else [candidate])
                for element in own
            )

        return negation(has_value) if self.negated else has_value

    def uses(self) -> Uses:
        return filtered(self)


@dataclass(frozen=True, slots=True)
class RelatedTo(Query):
    """The members of the relation ``key`` of one object, if the caller may read that object.

    It reads a field of the owner, not of the class that is searched.
    """

    clauses = ("$relatedTo",)
    usage = "`$relatedTo`"
    summary = 'the members of a relation of one object: `{"object": POINTER, "key": "likes"}`'

    class_name: ClassName
    object_id: ObjectId
    key: FieldName

    @classmethod
    def parse_clause(cls, clause: Clause, parser: Parser) -> Query:
        place, value = f"{clause.place}.$relatedTo", clause.value
        parser.size.add_subquery(place)
        if (
            not isinstance(value, dict)
            or not isinstance(value.get("key"), str)
            or "object" not in value
        ):
            raise InvalidQuery(parse_message("improper usage of $relatedTo", place))
        if _is_unsaved(value["object"]):
            return Nothing()
        owner = normalise(value["object"], f"{place}.object")
        if not isinstance(owner, dict) or not is_pointer(owner):
            raise InvalidQuery(f"{place}.object: expected a pointer")
        key = naming.check_field_name(value["key"], f"{place}.key")
        return cls(
            naming.check_class_name(str(owner["className"])),
            naming.parse_object_id(str(owner["objectId"])),
            key,
        )

    def predicate(self, matching: Matching) -> Predicate:
        members, class_name = matching.lookup.members, matching.class_name

        def is_member(obj: Object) -> bool:
            # Ids are unique within a class only.
            return class_name is not None and any(
                equal(member, pointer(class_name, obj["objectId"]))
                for member in members(self.class_name, self.object_id, self.key)
            )

        return is_member


def _is_unsaved(owner: object) -> bool:
    """Return whether an owner is a pointer without an id, as SDKs send for a new object."""
    return (
        isinstance(owner, dict)
        and owner.get("__type") == "Pointer"
        and not owner.get("objectId")
        and naming.is_class_name(str(owner.get("className")))
    )


def _subquery(operand: object, name: str, place: str, depth: int, parser: Parser) -> SubQuery:
    if not isinstance(operand, dict) or not isinstance(operand.get("className"), str):
        raise InvalidQuery(parse_message(f"improper usage of {name}", place))
    for key in operand:
        if key not in _SUBQUERY_KEYS:
            raise InvalidQuery(f"improper usage of {name}: {shown(key)} ({place})")
    limit = _amount(operand.get("limit"), f"{place}.limit", MAX_SUBQUERY_SKIP)
    skip = _amount(operand.get("skip"), f"{place}.skip", MAX_SUBQUERY_SKIP)
    order = operand.get("order", "")
    if not isinstance(order, str):
        raise InvalidQuery(f"{place}.order: expected text")
    class_name = naming.check_class_name(operand["className"])
    with parser.size.inside_subquery(place):
        where = parser.where(operand.get("where"), f"{place}.where", depth + 1)
    redirect_key = operand.get("redirectClassNameForKey")
    if redirect_key is not None:
        if not isinstance(redirect_key, str):
            raise InvalidQuery(f"{place}.redirectClassNameForKey: expected text")
        redirect_key = parser.path(redirect_key)[0]
    sort_keys = parser.order(order, f"{place}.order")
    return SubQuery(class_name, where, limit, skip or 0, sort_keys, redirect_key)


def _amount(value: object, place: str, most: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InvalidQuery(f"{place}: expected a whole number from 0 to {most}")
    return value
