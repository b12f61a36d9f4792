"""From a ``where`` as clients send it to the constraint tree.

``parse_where`` is the only gate for constraints: a tree that it returns has known operators with
operands of the right kind, canonical values, legal names, and a bounded size. Whatever is wrong
is a ``ServiceError`` with the code and words that Parse clients know, after the place:
``where.score.$in: bad $in value``. Codes: 102 the query's structure, 105 names, 107 operands,
111 values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeGuard

from backend.kernel.errors import InvalidJSON, InvalidKeyName, InvalidQuery, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.text import shown
from objects.core import names
from objects.core.names import FieldName
from objects.core.query import geo, text
from objects.core.query.limits import MAX_CONSTRAINTS, QuerySize
from objects.core.query.paths import is_index
from objects.core.query.relative_time import relative_date
from objects.core.query.tree import (
    SCORE,
    AnyOf,
    Compare,
    Comparison,
    ContainedBy,
    ContainsAll,
    ContainsAllRegex,
    Equals,
    Everything,
    Exists,
    In,
    InQuery,
    Matches,
    NoneOf,
    NotEquals,
    NotIn,
    OrderKey,
    Path,
    Query,
    RelatedTo,
    Select,
    SubQuery,
    all_of,
)
from objects.core.regex import patterns as regex
from objects.core.values import is_pointer, kind, normalise, normalise_date

MAX_DEPTH: Final = 10
"""Of ``$or``, ``$and``, ``$nor`` and sub-queries inside of each other."""
MAX_LIST: Final = 10_000
"""Values of one ``$in``, ``$nin``, ``$all``, ``$containedBy``."""
MAX_SUBQUERY_SKIP: Final = 2**31 - 1

_TIMESTAMPS: Final = frozenset({"createdAt", "updatedAt"})
_COMPARISONS: Final[Mapping[str, Comparison]] = {
    "$lt": "lt",
    "$lte": "lte",
    "$gt": "gt",
    "$gte": "gte",
}
_COMPARABLE: Final = frozenset({"Number", "String", "Date", "Boolean"})
_LOGIC: Final = frozenset({"$or", "$and", "$nor"})
_REGEX_OPTIONS: Final = frozenset("imsxu")
# What SDKs put into a query besides its where; the rest of it can't change which objects it finds.
_SUBQUERY_KEYS: Final = frozenset(
    {
        "className",
        "where",
        "limit",
        "skip",
        "order",
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


def parse_where(
    where: object,
    place: str = "where",
    *,
    allow_internal: bool = False,
    now: datetime | None = None,
) -> Query:
    """The tree of a decoded ``where``; None and ``{}`` find everything.

    ``allow_internal`` lets keys begin with ``_``, which is for the master key. ``now`` is what
    ``$relativeTime`` counts from.
    """
    return _Parser(allow_internal, now or datetime.now(UTC)).where(where, place, 0)


def parse_order(order: str, *, place: str = "order") -> tuple[OrderKey, ...]:
    """The sort keys of ``a,-b.c,$score``."""
    keys = []
    for part in order.split(","):
        name = part.strip()
        descending = name.startswith("-")
        name = name.removeprefix("-").removeprefix("+")
        if not name and not order.strip():
            continue
        if name == "$score":
            keys.append(OrderKey(SCORE, descending))
            continue
        try:
            path = check_path(name)
            if any(map(_is_odd_number, path)):
                raise InvalidKeyName(name)
        except InvalidKeyName:
            raise InvalidKeyName(f"{place}: Invalid field name: {shown(name)}.") from None
        if path[0] == "ACL":
            raise InvalidQuery(f"{place}: Cannot sort by ACL.")
        keys.append(OrderKey(path, descending))
    if len(keys) > MAX_CONSTRAINTS:
        raise InvalidQuery(f"{place}: too many sort keys")
    return tuple(keys)


def check_path(key: str, *, allow_internal: bool = False) -> Path:
    """The steps of a dotted key, or ``InvalidKeyName``."""
    internal = allow_internal and key.startswith("_")
    path = names.check_key_path(key[1:] if internal else key)
    if internal:
        path = (FieldName(f"_{path[0]}"), *path[1:])
    if len(path) > 2 and any(map(is_index, path[1:])) and any(map(_is_odd_number, path[1:])):
        # PostgreSQL would count such a step from the end of a list.
        raise InvalidKeyName(f"Invalid key name: {shown(key)}")
    return path


def _is_odd_number(step: str) -> bool:
    bare = step.strip(" \t\n\r\f\v")
    return not is_index(step) and is_index(bare.removeprefix("-").removeprefix("+"))


class _Parser:
    def __init__(self, allow_internal: bool, now: datetime) -> None:
        self.allow_internal = allow_internal
        self.now = now
        self.size = QuerySize()

    # --- structure ---

    def where(self, where: object, place: str, depth: int) -> Query:
        if where is None:
            return Everything()
        if not _is_object(where):
            raise InvalidJSON(f"{place}: expected an object")
        if depth > MAX_DEPTH:
            raise InvalidQuery(f"{place}: a query is nested at most {MAX_DEPTH} levels deep")
        return all_of(*(self.entry(key, value, place, depth) for key, value in where.items()))

    def entry(self, key: object, value: object, place: str, depth: int) -> Query:
        self.size.add_constraint(place)
        if not isinstance(key, str):
            raise InvalidJSON(f"{place}: a key must be a string")
        if key in _LOGIC:
            return self.logic(key, value, place, depth)
        if key == "$relatedTo":
            self.size.add_subquery(f"{place}.$relatedTo")
            return _related_to(value, f"{place}.$relatedTo")
        if key == "$text":
            return text.parse_text(None, value, f"{place}.$text")
        if key == "ACL" or key.startswith("ACL."):
            raise InvalidQuery("Cannot query on ACL.")
        path = check_path(key, allow_internal=self.allow_internal)
        return self.field(path, value, f"{place}.{shown(key)}", depth)

    def logic(self, key: str, value: object, place: str, depth: int) -> Query:
        at_least_one = key == "$nor"
        expected = "an array of at least 1 value" if at_least_one else "an array value"
        if not isinstance(value, list) or not value:
            raise InvalidQuery(f"{place}: Bad {key} format - use {expected}.")
        parts = []
        for index, part in enumerate(value):
            if not _is_object(part):
                raise InvalidQuery(f"{place}.{key}.{index}: Bad {key} format - expected objects")
            parts.append(self.where(part, f"{place}.{key}.{index}", depth + 1))
        if key == "$and":
            return all_of(*parts)
        return AnyOf(tuple(parts)) if key == "$or" else NoneOf(tuple(parts))

    # --- one field ---

    def field(self, path: Path, value: object, place: str, depth: int) -> Query:
        if not _is_object(value) or not any(_is_operator(key) for key in value):
            return Equals(path, self.value(path, value, place))
        operators = {key: operand for key, operand in value.items() if _is_operator(key)}
        direct = {key: item for key, item in value.items() if key not in operators}
        parts: list[Query] = []
        if direct:
            parts.append(Equals(path, self.value(path, direct, place)))
        for key, operand in operators.items():
            self.size.add_constraint(place)
            if key in _WITH_ANOTHER:
                if _WITH_ANOTHER[key] not in operators:
                    raise InvalidJSON(f"{place}.{key}: only together with {_WITH_ANOTHER[key]}")
                continue
            parts.append(self.operator(path, key, operand, operators, place, depth))
        return all_of(*parts)

    def operator(
        self,
        path: Path,
        key: str,
        operand: object,
        siblings: Mapping[str, object],
        place: str,
        depth: int,
    ) -> Query:
        here = f"{place}.{shown(key)}"
        if key in _COMPARISONS:
            value = self.value(path, operand, here)
            if kind(value) not in _COMPARABLE:
                raise InvalidJSON(f"{here}: expected a number, a string, a date or a boolean")
            return Compare(path, _COMPARISONS[key], value)
        if key == "$eq":
            return Equals(path, self.value(path, operand, here))
        if key == "$ne":
            return NotEquals(path, self.value(path, operand, here))
        if key == "$exists":
            if not isinstance(operand, bool):
                raise InvalidJSON(f"{here}: bad $exists value, should be a boolean")
            return Exists(path, operand)
        if key in _LISTS:
            message, make = _LISTS[key]
            return make(path, self.values(path, operand, here, message))
        if key == "$all":
            return self.contains_all(path, operand, here)
        if key == "$regex":
            return self.matches(path, operand, siblings.get("$options", ""), place)
        if key == "$text":
            return text.parse_text(path, operand, here)
        if key in ("$inQuery", "$notInQuery"):
            subquery = self.subquery(operand, key, here, depth)
            return InQuery(path, subquery, negated=key == "$notInQuery")
        if key in ("$select", "$dontSelect"):
            return self.select(path, key, operand, here, depth)
        if key == "$nearSphere":
            return geo.parse_near(path, operand, siblings, place)
        if key in ("$within", "$geoWithin"):
            return geo.parse_within(path, key, operand, here)
        if key == "$geoIntersects":
            return geo.parse_intersects(path, operand, here)
        raise InvalidJSON(f"{place}: bad constraint: {shown(key)}")

    # --- operands ---

    def value(self, path: Path, value: object, place: str) -> Json:
        if _is_object(value) and "$relativeTime" in value:
            if len(value) != 1:
                raise InvalidJSON(f"{place}: bad $relativeTime value")
            return relative_date(value["$relativeTime"], self.now, f"{place}.$relativeTime")
        if path[0] in _TIMESTAMPS and len(path) == 1 and isinstance(value, str):
            return {"__type": "Date", "iso": normalise_date(value, place)}
        checked = normalise(value, place)
        if isinstance(checked, dict) and checked.get("__type") == "File":
            # A file is known by its name: its url depends on the server that shows it.
            checked.pop("url", None)
        return checked

    def values(self, path: Path, operand: object, place: str, message: str) -> tuple[Json, ...]:
        if not isinstance(operand, list):
            raise InvalidJSON(f"{place}: {message}")
        if len(operand) > MAX_LIST:
            raise InvalidQuery(f"{place}: a list has at most {MAX_LIST} values")
        return tuple(
            self.value(path, value, f"{place}.{index}") for index, value in enumerate(operand)
        )

    def contains_all(self, path: Path, operand: object, place: str) -> Query:
        if not isinstance(operand, list):
            raise InvalidJSON(f"{place}: bad $all value")
        patterns = [item["$regex"] for item in operand if _is_object(item) and "$regex" in item]
        if not patterns:
            self.size.add_all_values(len(operand), place)
            return ContainsAll(path, self.values(path, operand, place, "bad $all value"))
        if len(patterns) != len(operand):
            raise InvalidJSON(f"{place}: All $all values must be of regex type or none")
        if len(patterns) > MAX_CONSTRAINTS:
            raise InvalidQuery(f"{place}: a list has at most {MAX_CONSTRAINTS} patterns")
        for index, item in enumerate(operand):
            self.matches(path, item["$regex"], item.get("$options", ""), f"{place}.{index}")
            if set(item) != {"$regex"}:
                raise InvalidJSON(f"{place}.{index}: expected $regex alone")
        return ContainsAllRegex(path, tuple(patterns))

    def matches(self, path: Path, pattern: object, options: object, place: str) -> Matches:
        if not isinstance(pattern, str):
            raise InvalidJSON(f"{place}.$regex: bad regex: expected text")
        if not isinstance(options, str) or not set(options) <= _REGEX_OPTIONS:
            raise InvalidQuery(f"{place}: Bad $options value for query: {shown(options)}")
        options = "".join(sorted(set(options)))
        try:
            compiled = regex.compile_regex(pattern, options)
        except ServiceError as error:
            raise InvalidQuery(f"{place}.$regex: {error.message}") from None
        self.size.add_pattern(compiled, f"{place}.$regex")
        return Matches(path, pattern, options)

    def subquery(self, operand: object, key: str, place: str, depth: int) -> SubQuery:
        if not _is_object(operand) or not isinstance(operand.get("className"), str):
            raise InvalidQuery(f"{place}: improper usage of {key}")
        for name in operand:
            if name not in _SUBQUERY_KEYS:
                raise InvalidQuery(f"{place}: improper usage of {key}: {shown(name)}")
        limit = _amount(operand.get("limit"), f"{place}.limit", MAX_SUBQUERY_SKIP)
        skip = _amount(operand.get("skip"), f"{place}.skip", MAX_SUBQUERY_SKIP)
        order = operand.get("order", "")
        if not isinstance(order, str):
            raise InvalidQuery(f"{place}.order: expected text")
        class_name = names.check_class_name(operand["className"])
        with self.size.inside_subquery(place):
            where = self.where(operand.get("where"), f"{place}.where", depth + 1)
        return SubQuery(
            class_name,
            where,
            limit,
            skip or 0,
            parse_order(order, place=f"{place}.order"),
        )

    def select(self, path: Path, key: str, operand: object, place: str, depth: int) -> Query:
        if (
            not _is_object(operand)
            or set(operand) != {"query", "key"}
            or not isinstance(operand["key"], str)
        ):
            raise InvalidQuery(f"{place}: improper usage of {key}")
        query = self.subquery(operand["query"], key, f"{place}.query", depth)
        selected = check_path(operand["key"], allow_internal=self.allow_internal)
        if selected[0] == "ACL":
            raise InvalidQuery("Cannot query on ACL.")
        return Select(path, query, selected, negated=key == "$dontSelect")


_LISTS: Final[Mapping[str, tuple[str, Callable[[Path, tuple[Json, ...]], Query]]]] = {
    "$in": ("bad $in value", In),
    "$nin": ("bad $nin value", NotIn),
    "$containedBy": ("bad $containedBy: should be an array", ContainedBy),
}
_WITH_ANOTHER: Final = {"$options": "$regex"} | dict.fromkeys(geo.DISTANCES, "$nearSphere")


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_operator(key: object) -> bool:
    return isinstance(key, str) and key.startswith("$") and key != "$relativeTime"


def _amount(value: object, place: str, most: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InvalidQuery(f"{place}: expected a whole number from 0 on")
    return value


def _related_to(value: object, place: str) -> RelatedTo:
    if not _is_object(value) or not isinstance(value.get("key"), str) or "object" not in value:
        raise InvalidQuery(f"{place}: improper usage of $relatedTo")
    owner = normalise(value["object"], f"{place}.object")
    if not isinstance(owner, dict) or not is_pointer(owner):
        raise InvalidQuery(f"{place}.object: expected a pointer")
    key = names.check_field_name(value["key"], f"{place}.key")
    return RelatedTo(
        names.check_class_name(str(owner["className"])),
        names.parse_object_id(str(owner["objectId"])),
        key,
    )


__all__ = ["check_path", "parse_order", "parse_where"]
