"""How many objects classes have, and how large they are, by PostgreSQL's statistics."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import BigIntegerField, QuerySet
from django.db.models.expressions import RawSQL

from objects.database import catalog
from objects.definitions import registry
from objects.definitions.models import GENERIC_TABLE, ObjectClass

# Estimates from PostgreSQL's statistics, so that the page is fast for classes of any size.
_TABLE = "to_regclass(COALESCE(%s::jsonb ->> objects_class.name, %s || objects_class.id))"
_OBJECTS = catalog.row_estimate(_TABLE)
_SIZE = f"COALESCE(pg_total_relation_size({_TABLE}), 0)"


def with_statistics(queryset: QuerySet[ObjectClass]) -> QuerySet[Any]:
    """The classes with ``object_estimate`` and ``total_size``, from statistics."""
    places = [json.dumps(registry.model_tables()), f"{GENERIC_TABLE}_"]
    return queryset.annotate(
        object_estimate=RawSQL(_OBJECTS, places, BigIntegerField()),
        total_size=RawSQL(_SIZE, places, BigIntegerField()),
    )


def estimate(class_id: int) -> int:
    """Return the estimated number of objects of a class; 0 without statistics."""
    row = with_statistics(ObjectClass.objects.filter(pk=class_id)).first()
    return max(int(row.object_estimate or 0), 0) if row else 0
