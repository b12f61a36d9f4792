"""The parser of a client's ``where``; its result is the constraint tree.

``parse_where`` is the only entry for constraints: a tree that it returns has known operators with
operands of the right kind, canonical values, legal names, and a bounded size. Errors
are ``ServiceError`` with the code and message that Parse clients know (``messages``), or with a
message that begins with the place: ``where.score.$lt: expected a number``. Codes: 102 the query's
structure, 105 names, 107 operands, 111 values.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeGuard

from backend.kernel.errors import InvalidJSON, InvalidKeyName, InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core import names
from objects.core.names import FieldName
from objects.core.query.limits import MAX_CONSTRAINTS, QuerySize
from objects.core.query.messages import parse_message
from objects.core.query.node import SCORE, Clause, Operand, OrderKey, Query
from objects.core.query.operators.comparison import Equals
from objects.core.query.operators.composition import Everything, all_of
from objects.core.query.operators.registry import CLAUSES, COMPANIONS, OPERATORS
from objects.core.query.paths import Path, is_index
from objects.core.query.relative_time import relative_date
from objects.core.values import normalise, normalise_date

MAX_DEPTH: Final = 10
"""Of ``$or``, ``$and``, ``$nor`` and sub-queries inside of each other."""
MAX_LIST: Final = 10_000
"""Values of one ``$in``, ``$nin``, ``$all``, ``$containedBy``."""

_TIMESTAMPS: Final = frozenset({"createdAt", "updatedAt"})
_FORMER_NAMES: Final = {"_created_at": "createdAt", "_updated_at": "updatedAt"}
"""Names that some apps sort by."""


def parse_where(
    where: object,
    place: str = "where",
    *,
    allow_internal: bool = False,
    internal_fields: frozenset[str] = frozenset(),
    now: datetime | None = None,
) -> Query:
    """Return the tree of a decoded ``where``; None and ``{}`` find everything.

    ``allow_internal`` lets all keys begin with ``_``, ``internal_fields`` these only; both are for
    the master key. ``now`` is what ``$relativeTime`` counts from.
    """
    parser = _Parser(allow_internal, internal_fields, now or datetime.now(UTC))
    return parser.where(where, place, 0)


def parse_order(order: str, *, place: str = "order") -> tuple[OrderKey, ...]:
    """Return the sort keys of ``a,-b.c,$score``."""
    keys = []
    for part in order.split(","):
        name = part.strip()
        descending = name.startswith("-")
        name = name.removeprefix("-").removeprefix("+")
        name = _FORMER_NAMES.get(name, name)
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
            message = parse_message(f"Invalid field name: {shown(name)}.", place)
            raise InvalidKeyName(message) from None
        if path[0] == "ACL":
            raise InvalidQuery(f"{place}: Cannot sort by ACL.")
        keys.append(OrderKey(path, descending))
    if len(keys) > MAX_CONSTRAINTS:
        raise InvalidQuery(f"{place}: too many sort keys")
    return tuple(keys)


def check_path(key: str, *, allow_internal: bool = False) -> Path:
    """Return the steps of a dotted key, or ``InvalidKeyName``."""
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
    def __init__(
        self, allow_internal: bool, internal_fields: frozenset[str], now: datetime
    ) -> None:
        self.allow_internal = allow_internal
        self.internal_fields = internal_fields
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
        clause = CLAUSES.get(key)
        if clause is not None:
            return clause.parse_clause(Clause(key, value, place, depth), self)
        if key == "ACL" or key.startswith("ACL."):
            raise InvalidQuery("Cannot query on ACL.")
        path = self.path(key)
        return self.field(path, value, f"{place}.{shown(key)}", depth)

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
            if key in COMPANIONS:
                if COMPANIONS[key] not in operators:
                    raise InvalidJSON(f"{place}.{key}: only together with {COMPANIONS[key]}")
                continue
            parts.append(self.operator(path, key, operand, operators, place, depth))
        return all_of(*parts)

    def operator(
        self,
        path: Path,
        key: str,
        value: object,
        siblings: Mapping[str, object],
        place: str,
        depth: int,
    ) -> Query:
        operator = OPERATORS.get(key)
        if operator is None:
            raise InvalidJSON(f"bad constraint: {shown(key)} ({place})")
        operand = Operand(path, key, value, siblings, place, f"{place}.{key}", depth)
        return operator.parse(operand, self)

    # --- operands: what ``node.Parser`` offers to operators ---

    def value(self, path: Path, value: object, place: str) -> Json:
        if _is_object(value) and "$relativeTime" in value:
            raise InvalidJSON(
                parse_message(
                    "$relativeTime can only be used with the $lt, $lte, $gt, and $gte operators",
                    place,
                )
            )
        if path[0] in _TIMESTAMPS and len(path) == 1 and isinstance(value, str):
            return {"__type": "Date", "iso": normalise_date(value, place)}
        checked = normalise(value, place)
        if isinstance(checked, dict) and checked.get("__type") == "File":
            # A file is known by its name: its url depends on the server that shows it.
            checked.pop("url", None)
        return checked

    def values(self, path: Path, operand: object, place: str, message: str) -> tuple[Json, ...]:
        if not isinstance(operand, list):
            raise InvalidJSON(parse_message(message, place))
        if len(operand) > MAX_LIST:
            raise InvalidQuery(f"{place}: a list has at most {MAX_LIST} values")
        return tuple(
            self.value(path, value, f"{place}.{index}") for index, value in enumerate(operand)
        )

    def relative_date(self, text: object, place: str) -> Json:
        return relative_date(text, self.now, place)

    def path(self, key: str) -> Path:
        is_internal = self.allow_internal or key in self.internal_fields
        return check_path(key, allow_internal=is_internal)

    def order(self, order: str, place: str) -> tuple[OrderKey, ...]:
        return parse_order(order, place=place)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_operator(key: object) -> bool:
    return isinstance(key, str) and key.startswith("$") and key != "$relativeTime"


__all__ = ["check_path", "parse_order", "parse_where"]
