"""How many objects classes have, and how large they are, by PostgreSQL's statistics."""

from __future__ import annotations

import json
from collections.abc import Collection
from math import inf
from time import monotonic
from typing import Any, Final

from django.db.models import BigIntegerField, QuerySet
from django.db.models.expressions import RawSQL

from objects.database import catalog
from objects.definitions import registry
from objects.definitions.models import GENERIC_TABLE, ObjectClass

# Estimates from PostgreSQL's statistics, so that the page is fast for classes of any size.
_TABLE = "to_regclass(COALESCE(%s::jsonb ->> objects_class.name, %s || objects_class.id))"
_OBJECTS = catalog.row_estimate(_TABLE)
_SIZE = f"COALESCE(pg_total_relation_size({_TABLE}), 0)"

_RECENT: Final = 30.0  # seconds
_MOST_RECENT: Final = 10_000
_NEVER: Final = (-inf, -1)
_recent: Final[dict[int, tuple[float, int]]] = {}
_LARGEST_FOR: Final = 300.0  # seconds
_MOST_LARGEST: Final = 500
_largest: tuple[float, list[int]] = (-inf, [])


def with_statistics(queryset: QuerySet[ObjectClass]) -> QuerySet[Any]:
    """The classes with ``object_estimate`` and ``total_size``, from statistics."""
    return _with_estimates(queryset).annotate(
        total_size=RawSQL(_SIZE, _places(), BigIntegerField())
    )


def _with_estimates(queryset: QuerySet[ObjectClass]) -> QuerySet[Any]:
    return queryset.annotate(object_estimate=RawSQL(_OBJECTS, _places(), BigIntegerField()))


def _places() -> list[str]:
    return [json.dumps(registry.model_tables()), f"{GENERIC_TABLE}_"]


def estimate(class_id: int) -> int:
    """Return the estimated number of objects of a class; 0 without statistics."""
    return max(_estimates([class_id]).get(class_id, 0), 0)


def recent_estimates(class_ids: Collection[int]) -> dict[int, int]:
    """Return the estimated numbers of objects of classes, as this process has read them in the last
    half minute. Classes without statistics are missing."""
    now = monotonic()
    missing = [
        class_id for class_id in class_ids if _recent.get(class_id, _NEVER)[0] < now - _RECENT
    ]
    if missing:
        if len(_recent) > _MOST_RECENT:
            _recent.clear()
        for class_id, count in _estimates(missing).items():
            _recent[class_id] = now, count
    counts = {class_id: _recent.get(class_id, _NEVER)[1] for class_id in class_ids}
    return {class_id: count for class_id, count in counts.items() if count >= 0}


def largest() -> list[int]:
    """Return the ids of the classes with the most objects, the largest first, as this process has
    read them in the last five minutes."""
    global _largest
    if not _largest[0] > monotonic() - _LARGEST_FOR:
        rows = _with_estimates(ObjectClass.objects.all()).order_by("-object_estimate", "pk")
        _largest = monotonic(), list(rows.values_list("pk", flat=True)[:_MOST_LARGEST])
    return _largest[1]


def _estimates(class_ids: Collection[int]) -> dict[int, int]:
    rows = _with_estimates(ObjectClass.objects.filter(pk__in=class_ids))
    return {
        class_id: -1 if count is None else int(count)
        for class_id, count in rows.values_list("pk", "object_estimate")
    }
