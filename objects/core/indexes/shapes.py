"""Shapes of queries: which fields a query asks for and how, without any value.

Queries of one shape cost about the same and are served by the same index. ``shape_of`` gives the
shape of a query, ``candidates`` the indexes that would serve a shape, the most promising first.

A ``Shape`` holds names of fields that the class has, so there are only so many of them, however
many queries clients make up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, TypeAlias, cast, get_args

from objects.core.names import CREATED_AT, OBJECT_ID, FieldName
from objects.core.query import tree
from objects.core.query.node import OrderKey, Query, Use
from objects.core.schema.definition import DEFAULT_FIELDS, ClassSchema, Direction

IndexFields: TypeAlias = tuple[tuple[FieldName, Direction], ...]
"""The fields of an index in its order, as in ``IndexDeclaration.fields``."""

MAX_CONDITIONS: Final = 8
MAX_ORDER_KEYS: Final = 4
MAX_INDEX_FIELDS: Final = 4
"""Fields of a learned index. Four of the widest keys fit into an entry of a btree (2704 bytes)."""
MAX_EQUALITY_FIELDS: Final = 2

_USES: Final[tuple[Use, ...]] = get_args(Use)
_RANK: Final[Mapping[str, int]] = {use: rank for rank, use in enumerate(_USES)}
_ORDERED: Final = frozenset({"String", "Number", "Boolean", "Date", "Pointer"})
_RANGED: Final = frozenset({"String", "Number", "Boolean", "Date"})


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a query.

    ``conditions`` has each field of the query's top-level conditions once, by name, with how it is
    asked for. ``order`` has the sort keys with whether each is descending.
    """

    conditions: tuple[tuple[FieldName, Use], ...]
    order: tuple[tuple[FieldName, bool], ...] = ()

    def fields(self, *uses: Use) -> tuple[FieldName, ...]:
        """Return the fields that the query uses in one of these ways, by name."""
        return tuple(name for name, use in self.conditions if use in uses)

    @property
    def names(self) -> frozenset[FieldName]:
        """All fields of the shape."""
        return frozenset(name for name, _ in (*self.conditions, *self.order))

    def encode(self) -> str:
        """Return the shape as JSON text; the same text for the same shape."""
        order = [f"-{name}" if descending else name for name, descending in self.order]
        return json.dumps({"where": dict(self.conditions), "order": order}, separators=(",", ":"))

    def __str__(self) -> str:
        where = ", ".join(f"{name} ({use})" for name, use in self.conditions) or "all objects"
        order = ", ".join(f"-{name}" if down else name for name, down in self.order)
        return f"{where} in order of {order}" if order else where


def decode(text: str) -> Shape | None:
    """Return the shape that ``Shape.encode`` has made this text of; None for another text."""
    try:
        wire: Any = json.loads(text)
        conditions = tuple(wire["where"].items())
        order = tuple((FieldName(key.lstrip("-")), key.startswith("-")) for key in wire["order"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if not all(use in _USES for _, use in conditions):
        return None
    return Shape(conditions, order)


# -- From a query ---------------------------------------------------------------------------------


def shape_of(where: Query, order: Sequence[OrderKey], schema: ClassSchema) -> Shape | None:
    """Return the shape of a query; None for one of too many fields to be counted.

    Conditions of access lists don't count: they are part of every query of a client. Fields that
    the class doesn't have are left out.
    """
    key = key_of(where, order, schema)
    return None if key is None else Shape(*key)


ShapeKey: TypeAlias = tuple[tuple[tuple[FieldName, Use], ...], tuple[tuple[FieldName, bool], ...]]
"""The parts of a ``Shape``."""


def key_of(where: Query, order: Sequence[OrderKey], schema: ClassSchema) -> ShapeKey | None:
    """What ``shape_of`` makes a shape of. Every find takes it: it has to be quick."""
    uses: dict[FieldName, Use] = {}
    own = schema.fields
    for part in where.parts if type(where) is tree.AllOf else (where,):
        for name, use in part.uses():
            existing = uses.get(name)
            if existing is None:
                if name in own or name in DEFAULT_FIELDS:
                    uses[name] = use
            elif _RANK[use] < _RANK[existing]:
                uses[name] = use
    if len(uses) > MAX_CONDITIONS or len(order) > MAX_ORDER_KEYS:
        return None
    conditions = tuple(sorted(uses.items())) if len(uses) > 1 else tuple(uses.items())
    keys = []
    for key in order:
        name = key.path[0]
        if len(key.path) > 1 or (name not in own and name not in DEFAULT_FIELDS):
            # Keys inside of values, and a rank of words, are no order that an index has.
            return conditions, ()
        keys.append((name, key.descending))
    return conditions, tuple(keys)


# -- Indexes --------------------------------------------------------------------------------------


def index_for(shape: Shape, schema: ClassSchema) -> IndexFields | None:
    """Return the index that most probably serves a shape; None if none of ours does."""
    return next(iter(candidates(shape, schema)), None)


def candidates(shape: Shape, schema: ClassSchema) -> tuple[IndexFields, ...]:
    """Return the indexes that may serve a shape, the most promising first.

    Fields that equal a value come first, then what the result is sorted by, or else the field of a
    range. Equality alone needs none: every class has an index for it. Neither does a query for ids
    or for a unique field. Words of texts are left to indexes that are declared.
    """
    equal = shape.fields("equality")
    if any(name == OBJECT_ID or _is_unique(schema, name) for name in equal):
        return ()
    leading: IndexFields = tuple(
        (name, cast(Direction, 1)) for name in equal if _kind(schema, name) in _ORDERED
    )[:MAX_EQUALITY_FIELDS]
    ranges = [name for name in shape.fields("range", "prefix") if _kind(schema, name) in _RANGED]
    keys = _sort_keys(shape, schema, frozenset(equal))
    room = MAX_INDEX_FIELDS - len(leading)
    indexes: list[IndexFields] = []
    is_by_age = bool(keys) and keys[0][0] == CREATED_AT
    if keys and not is_by_age:
        indexes.append(leading + keys[:room])
    indexes += [(*leading, (name, 1)) for name in ranges if name != CREATED_AT]
    # Every class has an index in the order of age. Queries that are slow in spite of it find little
    # of what they walk past: the field of a range serves them better.
    if is_by_age and leading:
        indexes.append(leading + keys[:room])
    indexes += [
        ((name, "2dsphere"),) for name in shape.fields("place") if _kind(schema, name) == "GeoPoint"
    ]
    distinct: list[IndexFields] = []
    for fields in indexes:
        if not any(is_part_of(fields, other) for other in distinct):
            distinct.append(fields)
    return tuple(distinct)


def _sort_keys(shape: Shape, schema: ClassSchema, equal: frozenset[FieldName]) -> IndexFields:
    """Return the sort keys from the first that a btree holds, with the first one ascending.

    An index is read in both directions. Fields that equal a value don't sort.
    """
    keys: list[tuple[FieldName, bool]] = []
    for name, descending in shape.order:
        if name in equal:
            continue
        if name == OBJECT_ID or _kind(schema, name) not in _ORDERED:
            break
        keys.append((name, descending))
    return tuple(
        (name, cast(Direction, 1 if descending == keys[0][1] else -1)) for name, descending in keys
    )


def served_equality(
    learned: Sequence[IndexFields], where: Query, order: Sequence[OrderKey]
) -> frozenset[FieldName]:
    """Return the fields whose equality leads into one of these indexes, for the rest of the query.

    ``learned`` are indexes that were built for shapes. An index of equality and order serves both
    only if the equality is written with the index's own expression.
    """
    parts = where.parts if isinstance(where, tree.AllOf) else (where,)
    equal = {
        part.path[0]
        for part in parts
        if isinstance(part, tree.Equals) and len(part.path) == 1 and part.value is not None
    }
    if not equal:
        return frozenset()
    ranges = {
        part.path[0]
        for part in parts
        if isinstance(part, tree.Compare | tree.Matches) and len(part.path) == 1
    }
    if order and len(order[0].path) == 1:
        ranges.add(next((k.path[0] for k in order if k.path[0] not in equal), order[0].path[0]))
    served: set[FieldName] = set()
    for fields in learned:
        leading = 0
        while leading < len(fields) and fields[leading][0] in equal:
            leading += 1
        if 0 < leading < len(fields) and fields[leading][0] in ranges:
            served.update(name for name, _ in fields[:leading])
    return frozenset(served)


def led_by_constants(indexes: Iterable[IndexFields], where: Query) -> frozenset[FieldName]:
    """Return the fields after the first of an index that it serves certain values of.

    The query names certain values of all fields before them in the index.
    """
    parts = where.parts if isinstance(where, tree.AllOf) else (where,)
    certain = {
        part.path[0]
        for part in parts
        if isinstance(part, tree.Equals | tree.In) and len(part.path) == 1
    }
    led: set[FieldName] = set()
    for fields in indexes:
        names = [name for name, direction in fields if isinstance(direction, int)]
        led.update(list(takewhile(certain.__contains__, names))[1:])
    return frozenset(led)


def is_part_of(fields: IndexFields, other: IndexFields) -> bool:
    """Return whether an index on ``other`` has all that one on ``fields`` would have."""
    if len(fields) > len(other):
        return False
    same = all(a == b for a, b in zip(fields, other, strict=False))
    if same or any(not isinstance(way, int) for _, way in fields):
        return same
    return all(
        a == b and isinstance(up, int) and isinstance(down, int) and up == -down
        for (a, up), (b, down) in zip(fields, other, strict=False)
    )


def _kind(schema: ClassSchema, name: FieldName) -> str | None:
    field = schema.field_type(name)
    return field.kind if field else None


def _is_unique(schema: ClassSchema, name: FieldName) -> bool:
    field = schema.field_type(name)
    return field is not None and field.unique
