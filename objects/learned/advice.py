"""Indexes that slow queries of a class had no use of, for the admin to advise.

Finds over ``SLOW_QUERY`` milliseconds count, with the fields that they queried without an index.
Equality needs none: every class has an index for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from django.db.models.functions import Now

from backend.kernel.json_types import Json
from objects.core.indexes.shapes import Shape, decode
from objects.core.names import FieldName
from objects.database.orm import orm_queries
from objects.learned import shape_counts
from objects.learned.models import QueryShape
from objects.sql.tables import ClassTable

AdviceUse = Literal["range", "order", "place", "text"]
_ORDERED: Final = frozenset({"String", "Number", "Boolean", "Date"})
_PLACES: Final = frozenset({"GeoPoint", "Polygon"})
_ALWAYS_INDEXED: Final = frozenset({"objectId", "createdAt"})
_KEEP_DAYS: Final = 14


@dataclass(slots=True)
class Advice:
    """A field that slow queries filtered by, and the index that would serve them.

    ``queries`` and ``seconds`` are those of the use that was the costliest.
    """

    field: str
    direction: Json
    uses: tuple[AdviceUse, ...] = ()
    queries: int = 0
    seconds: float = 0.0
    latest: datetime | None = None
    by_use: dict[AdviceUse, tuple[int, float]] = dataclasses.field(default_factory=dict, repr=False)

    def add(self, use: AdviceUse, queries: int, seconds: float, latest: datetime | None) -> None:
        """Count slow queries that used the field in this way."""
        counted = self.by_use.get(use, (0, 0.0))
        self.by_use[use] = (counted[0] + queries, counted[1] + seconds)
        order: tuple[AdviceUse, ...] = ("range", "order", "place", "text")
        self.uses = tuple(each for each in order if each in self.by_use)
        self.queries = max(number for number, _ in self.by_use.values())
        self.seconds = max(spent for _, spent in self.by_use.values())
        if latest is not None and (self.latest is None or latest > self.latest):
            self.latest = latest


def advice(table: ClassTable) -> list[Advice]:
    """Return the fields of slow queries that still have no index, the costliest first."""
    shape_counts.flush()
    slow = QueryShape.objects.filter(
        class_id=table.class_id,
        slow_calls__gt=0,
        slow_at__gt=Now() - timedelta(days=_KEEP_DAYS),
    )
    with orm_queries():
        rows = list(slow)
    by_field: dict[tuple[str, str], Advice] = {}
    for row in rows:
        shape = decode(row.shape)
        if shape is None:
            continue
        for use, name in sorted(set(unserved(table, shape))):
            direction = {"place": "2dsphere", "text": "text"}.get(use, "1")
            entry = by_field.setdefault((name, direction), Advice(name, direction))
            entry.add(use, row.slow_calls, row.slow_seconds, row.slow_at)
    return sorted(by_field.values(), key=lambda entry: (-entry.seconds, entry.field))


def unserved(table: ClassTable, shape: Shape) -> Iterator[tuple[AdviceUse, FieldName]]:
    """What queries of a shape ask for without an index: how, and of which field."""
    for name, _ in shape.order[:1]:
        if _kind(table, name) in _ORDERED and not _is_served(table, "order", name):
            yield "order", name
    uses: dict[str, AdviceUse] = {
        "range": "range",
        "prefix": "range",
        "alternative": "range",
        "place": "place",
        "text": "text",
    }
    for name, how in shape.conditions:
        use = uses.get(how)
        if use is not None and _fits(table, use, name) and not _is_served(table, use, name):
            yield use, name


def _fits(table: ClassTable, use: AdviceUse, name: FieldName) -> bool:
    kind = _kind(table, name)
    if use == "place":
        return kind in _PLACES
    return kind == "String" if use == "text" else kind in _ORDERED


def _kind(table: ClassTable, name: FieldName) -> str | None:
    field_type = table.schema.field_type(name)
    return field_type.kind if field_type else None


def _is_served(table: ClassTable, use: AdviceUse, name: FieldName) -> bool:
    """Return whether an index of the class begins with this field, for this use."""
    if use in ("range", "order") and name in _ALWAYS_INDEXED:
        return True
    if name in table.columns:
        return True  # a model has its own indexes; what they serve isn't known here
    directions = {"place": ("2dsphere",), "text": ("text",)}.get(use, (1, -1))
    indexes = [index.fields for index in table.schema.index_declarations.values()]
    for fields in (*indexes, *table.learned):
        leading = fields if use == "text" else fields[:1]
        if any(field == name and direction in directions for field, direction in leading):
            return True
    return False
