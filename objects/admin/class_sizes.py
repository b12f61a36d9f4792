"""How many objects classes have, and how large they are, by PostgreSQL's statistics."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import BigIntegerField, QuerySet
from django.db.models.expressions import RawSQL

from objects.definitions import registry
from objects.definitions.models import GENERIC_TABLE, ObjectClass

# Estimates from PostgreSQL's statistics, so that the page is fast for classes of any size.
_TABLE = "to_regclass(COALESCE(%s::jsonb ->> objects_class.name, %s || objects_class.id))"
# PostgreSQL analyzes no table with fewer than 50 changes (reltuples is -1), but counts its live
# rows. These counts are lost in a crash, so 0 of a table with content is no estimate.
_OBJECTS = f"""(
    SELECT CASE
        WHEN reltuples >= 0 THEN reltuples::bigint
        WHEN pg_relation_size(oid) = 0 THEN 0
        ELSE COALESCE(NULLIF(pg_stat_get_live_tuples(oid), 0), -1)
    END
    FROM pg_class WHERE oid = {_TABLE}
)"""
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
