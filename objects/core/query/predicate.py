"""What the constraint tree means: whether an object is found by a query, and in which order.

This is the definition that the SQL of ``objects.sql.compiler`` is tested against, and the predicate
that live queries run on every event. Plain Python: no I/O but what the ``Lookup`` does, and no
operand can make it fail or hang.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import Final

from backend.kernel.json_types import Json
from objects.core.query import geo_formulas
from objects.core.query.node import Lookup, Matching, OrderKey, Predicate, Query, SubQuery
from objects.core.query.paths import Object, elements, exact_value
from objects.core.query.tree import near_of
from objects.core.values import kind, number_key

__all__ = [
    "Lookup",
    "NoLookup",
    "Predicate",
    "matches",
    "predicate",
    "sort_value",
    "sorted_objects",
]


class NoLookup:
    """Sub-queries find nothing, and no relation has members."""

    def find(self, query: SubQuery) -> Sequence[Object]:
        return ()

    def members(self, class_name: str | None, object_id: str, key: str) -> Collection[Json]:
        return ()


def matches(
    query: Query, obj: Object, lookup: Lookup | None = None, class_name: str | None = None
) -> bool:
    """Return whether the query finds the object. For many objects, build one ``predicate``."""
    return predicate(query, lookup, class_name)(obj)


def predicate(
    query: Query, lookup: Lookup | None = None, class_name: str | None = None
) -> Predicate:
    """Return the query as a function of an object of a class. Every call runs the sub-queries.

    Without ``class_name`` no object is a member of a relation. Raises ``InvalidQuery`` for a text
    search with stemming, which only PostgreSQL can do.
    """
    return query.predicate(Matching(lookup or NoLookup(), class_name))


# --- order ---------------------------------------------------------------------------------

_RANKS: Final = {
    "Number": 1,
    "String": 2,
    "Array": 4,
    "Boolean": 5,
    "Date": 6,
}
_STRUCTURE: Final = 3
_TEXT_KEYS: Final = {"Date": "iso", "Pointer": "objectId", "File": "name", "Bytes": "base64"}


def sort_value(value: Json) -> tuple[int, int | Decimal, str]:
    """What values of any kind are sorted by: MongoDB's order of kinds, then the value.

    Missing and null, numbers, strings, objects, lists, booleans, dates. Objects and lists are all
    alike, but for pointers (by objectId), files (by name) and bytes.
    """
    value_kind = kind(value)
    if value_kind is None or value_kind == "Relation":
        return (0, 0, "")
    rank = _RANKS.get(value_kind, _STRUCTURE)
    if isinstance(value, bool):
        return (rank, 0, "true" if value else "false")
    if isinstance(value, int | float):
        return (rank, number_key(value), "")
    if isinstance(value, str):
        return (rank, 0, value)
    if isinstance(value, dict) and value_kind in _TEXT_KEYS:
        return (rank, 0, str(value[_TEXT_KEYS[value_kind]]))
    return (rank, 0, "")


def sorted_objects(
    objects: Iterable[Object], order: Sequence[OrderKey], where: Query | None = None
) -> list[Object]:
    """Return the objects in the order in which a query sends them.

    Ascending is missing first, descending is missing last. A path of several steps is exact.
    Without keys, a top-level Near sorts by distance. objectId is the last key, in the direction
    of the key before it. ``$score`` sorts nothing here.
    """
    keys = [key for key in order if not key.is_score]
    result = list(objects)
    if not any(key.path == ("objectId",) for key in keys):
        descending = bool(order) and order[-1].descending
        result.sort(key=lambda obj: str(obj["objectId"]), reverse=descending)
    near = near_of(where) if where else None
    if near is not None and not order:
        place, center = near.path, near.point

        def nearest(obj: Object) -> float:
            points = map(geo_formulas.point_of, elements(obj, place))
            return min(
                geo_formulas.distance(point, center) for point in points if point is not None
            )

        result.sort(key=nearest)
    for key in reversed(keys):
        path = key.path
        result.sort(
            key=lambda obj, path=path: sort_value(exact_value(obj, path)),  # type: ignore[misc]
            reverse=key.descending,
        )
    return result
