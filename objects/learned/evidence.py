"""The stored costs of queries and the stored learned indexes of classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, Final

from django.db.models import (
    BigIntegerField,
    Case,
    DurationField,
    Exists,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
    Window,
)
from django.db.models.functions import Now, RowNumber

from objects.core.indexes.decisions import Cost, Suggestion, Trial, suggestions
from objects.core.indexes.shapes import IndexFields, Shape, decode
from objects.core.names import FieldName
from objects.database import catalog
from objects.database.catalog import IndexState, TableSize
from objects.database.orm import orm_queries
from objects.definitions.models import ObjectClass
from objects.learned.models import LearnedIndex, QueryShape
from objects.sql.fields import learned_expression
from objects.sql.tables import ClassTable

MAX_SHAPES: Final = 100
"""Shapes of a class that the upkeep leaves; those that cost least go first."""
MAX_FAILED: Final = 32
"""Failed indexes of a class that wait to be tried again. With so many, none is built: forgetting
one of them would let queries have the same indexes built and dropped again and again."""
KEEP_DAYS: Final = 14
_WINDOW: Final = timedelta(days=1)
_SAMPLE: Final = 500  # objects
_ENTRY: Final = 28
"""Bytes of an index entry without its fields: header, pointer, objectId."""
_PLACE: Final = 60
_FILL: Final = 1.3


# -- Shapes ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShapeCost:
    """A shape of queries of a class, and what they cost.

    ``recent`` counts for a day at most and only with the indexes that are there, ``since`` from the
    last index on that concerns the shape, ``before`` until then; ``version`` is the class's version
    of that moment.
    """

    shape: Shape
    version: int
    recent: Cost
    since: Cost
    before: Cost
    last_at: datetime


@orm_queries()
def shapes(class_id: int) -> list[ShapeCost]:
    """Return the shapes of the queries of a class, the costliest first."""
    rows = (
        QueryShape.objects.filter(class_id=class_id)
        .annotate(is_recent=Q(window_start__gt=Now() - _WINDOW))
        .order_by((F("window_seconds") + F("seconds")).desc(), "pk")
    )
    return [
        ShapeCost(
            shape,
            row.version,
            Cost(row.window_calls, row.window_seconds, row.window_results)
            if row.is_recent
            else Cost(),
            Cost(row.calls, row.seconds, row.results),
            Cost(row.before_calls, row.before_seconds),
            row.last_at,
        )
        for row in rows
        if (shape := decode(row.shape)) is not None
    ]


@orm_queries()
def restart(class_id: int, fields: Iterable[FieldName], version: int) -> None:
    """Count the queries that read one of these fields from this version of the class on.

    For the transaction that gives the class the version, after its indexes have changed.
    """
    # Also the end of a longer name: that only means counting from here on again.
    reads = [Q(shape__contains=f'{name}"') for name in sorted(fields)]
    if not reads:
        return
    has_calls = Q(calls__gt=0)
    QueryShape.objects.filter(reduce(or_, reads), class_id=class_id).update(
        version=version,
        before_calls=Case(When(has_calls, then=F("calls")), default=F("before_calls")),
        before_seconds=Case(When(has_calls, then=F("seconds")), default=F("before_seconds")),
        calls=0,
        seconds=0,
        results=0,
        **_new_window(),
    )


@orm_queries()
def forget_recent(class_id: int) -> None:
    """Let the queries of a class count again for what to build, after its indexes have changed."""
    QueryShape.objects.filter(class_id=class_id).update(**_new_window())


def _new_window() -> dict[str, Any]:
    return {"window_start": Now(), "window_calls": 0, "window_seconds": 0, "window_results": 0}


@orm_queries()
def forget_shapes(class_id: int | None = None) -> int:
    """Forget what queries of the class, or of all classes, cost; how many shapes that were."""
    rows = QueryShape.objects.all()
    if class_id is not None:
        rows = rows.filter(class_id=class_id)
    deleted, _ = rows.delete()
    return deleted


def classes_to_serve(calls: int, seconds: float) -> list[int]:
    """Return the ids of classes with a shape that costs so much in its window, at least."""
    rows = QueryShape.objects.filter(window_calls__gte=calls, window_seconds__gte=seconds)
    with orm_queries():
        return list(rows.values_list("class_id", flat=True).distinct())


@orm_queries()
def trim() -> None:
    """Remove query shapes that are no longer used, and the cheapest beyond the limit."""
    too_old = Now() - timedelta(days=KEEP_DAYS)
    has_class = Exists(ObjectClass.objects.filter(pk=OuterRef("class_id")))
    failed = LearnedIndex.objects.filter(state=LearnedIndex.FAILED)
    QueryShape.objects.filter(Q(last_at__lt=too_old) | ~has_class).delete()
    _cheapest_shapes().delete()
    LearnedIndex.objects.filter(~has_class).delete()
    failed.filter(retry_at__lt=too_old).delete()
    by_age = Window(RowNumber(), partition_by="class_id", order_by=F("started_at").desc())
    may_retry = failed.filter(Q(retry_at=None) | Q(retry_at__lte=Now()))
    beyond = may_retry.annotate(place=by_age).filter(place__gt=MAX_FAILED)
    LearnedIndex.objects.filter(pk__in=beyond.values("pk")).delete()


def _cheapest_shapes() -> QuerySet[QueryShape]:
    """Those beyond the limit of each class, which no index was built for."""
    served = LearnedIndex.objects.filter(
        class_id=OuterRef("class_id"), shape=OuterRef("shape")
    ).exclude(state=LearnedIndex.FAILED)
    recent = Case(
        When(window_start__gt=Now() - _WINDOW, then=F("window_seconds")), default=Value(0.0)
    )
    by_cost = Window(
        RowNumber(),
        partition_by="class_id",
        order_by=[(F("slow_seconds") + recent).desc(), F("last_at").desc()],
    )
    ranked = QueryShape.objects.filter(~Exists(served)).annotate(place=by_cost)
    return QueryShape.objects.filter(pk__in=ranked.filter(place__gt=MAX_SHAPES).values("pk"))


# -- Learned indexes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Learned:
    """A row of ``LearnedIndex``, with PostgreSQL's statistics of its index.

    ``size`` is in bytes, and None where the database has no such index. ``is_valid``: PostgreSQL
    can use it.
    """

    id: int
    class_id: int
    name: str
    fields: IndexFields
    state: str
    shape: Shape
    reason: str
    attempts: int
    may_retry: bool
    version: int
    before: Cost
    build_seconds: float | None
    built_at: datetime | None
    scans: int
    used_at: datetime | None
    size: int | None
    is_valid: bool
    scans_now: int

    @property
    def trial_age(self) -> float:
        """Seconds since it was built."""
        if self.built_at is None:
            return 0.0
        return (datetime.now(UTC) - self.built_at).total_seconds()


def learned(class_id: int | None = None) -> list[Learned]:
    """Return the learned indexes of the class, or of all classes, in every state."""
    may_retry = Q(retry_at=None) | Q(retry_at__lte=Now())
    rows = LearnedIndex.objects.annotate(may_retry=may_retry).order_by("class_id", "pk")
    if class_id is not None:
        rows = rows.filter(class_id=class_id)
    with orm_queries():
        indexes = list(rows)
    states = catalog.index_states([index.name for index in indexes])
    return [_learned(index, index.may_retry, states.get(index.name)) for index in indexes]


def _learned(row: LearnedIndex, may_retry: bool, state: IndexState | None) -> Learned:
    return Learned(
        id=row.pk,
        class_id=row.class_id,
        name=row.name,
        fields=index_fields(row.fields),
        state=row.state,
        shape=decode(row.shape) or Shape(()),
        reason=row.reason,
        attempts=row.attempts,
        may_retry=may_retry,
        version=row.version,
        before=Cost(row.before_calls, row.before_seconds),
        build_seconds=row.build_seconds,
        built_at=row.built_at,
        scans=row.scans,
        used_at=row.used_at,
        size=state.size if state else None,
        is_valid=state is not None and state.is_valid,
        scans_now=state.scans if state else 0,
    )


def index_fields(stored: Iterable[tuple[str, Any]]) -> IndexFields:
    """Return the fields of a learned index as its row has them."""
    return tuple((FieldName(name), direction) for name, direction in stored)


@orm_queries()
def note_use() -> None:
    """Store when each learned index was used last, by the counters of PostgreSQL.

    A counter that is smaller than before was reset: only what it has counted since is use. Times
    in which nobody read the counters (a service that was stopped, an archive that was restored)
    don't count as unused.
    """
    now = Now()
    unread = Case(
        When(checked_at__lt=now - timedelta(hours=1), then=now - F("checked_at")),
        default=Value(timedelta(0)),
        output_field=DurationField(),
    )
    LearnedIndex.objects.filter(
        Q(checked_at=None) | Q(checked_at__lt=now - timedelta(minutes=10)),
        state=LearnedIndex.VALID,
    ).update(used_at=F("used_at") + unread, checked_at=now)
    counter = Func(
        Func("name", function="to_regclass"),
        function="pg_stat_get_numscans",
        output_field=BigIntegerField(),
    )
    counted = LearnedIndex.objects.annotate(counter=counter)
    counted.filter(Q(counter__gt=F("scans")) | Q(counter__lt=F("scans"))).update(
        scans=F("counter"),
        used_at=Case(
            When(Q(counter__gt=F("scans")) | Q(counter__gt=0), then=now), default=F("used_at")
        ),
    )


# -- Suggestions ----------------------------------------------------------------------------------


def size_of(table: ClassTable) -> TableSize:
    """Return the size of a class by PostgreSQL's statistics."""
    return catalog.table_size(table.storage)


def estimated_size(table: ClassTable, fields: IndexFields, rows: float) -> float:
    """Bytes that an index on these fields will have, by some objects of the class."""
    expressions = [
        learned_expression(table, name) for name, direction in fields if direction != "2dsphere"
    ]
    if not expressions:
        return rows * _PLACE * _FILL
    size = catalog.average_size(table.storage, expressions, _SAMPLE)
    return rows * (_ENTRY + size) * _FILL


def suggestions_for(
    table: ClassTable,
    costs: Sequence[ShapeCost],
    indexes: Sequence[Learned],
    size: TableSize | None = None,
) -> list[Suggestion]:
    """Return the indexes that queries of the class would be faster with, the most valuable first.

    Classes that are Django models have the indexes of their model, and none is suggested.
    """
    if not table.is_partition or not costs:
        return []
    declared = [index.fields for index in table.schema.index_declarations.values()]
    present = [index.fields for index in indexes if index.state != "failed"]
    refused = [index.fields for index in indexes if index.state == "failed" and not index.may_retry]
    return suggestions(
        table.schema,
        (size or size_of(table)).rows,
        {cost.shape: cost.recent for cost in costs},
        [*declared, *present],
        refused,
    )


def may_build(indexes: Sequence[Learned]) -> bool:
    """Return whether another index may be built automatically for the class of these."""
    waiting = sum(index.state == LearnedIndex.FAILED and not index.may_retry for index in indexes)
    return waiting < MAX_FAILED


def trials(index: Learned, costs: Sequence[ShapeCost]) -> tuple[Trial, list[Trial]]:
    """Return the trial of a valid index for its own shape, and those for other affected shapes."""
    own = Trial(index.before, Cost())
    other_trials = []
    names = {name for name, _ in index.fields}
    for cost in costs:
        if cost.shape == index.shape:
            own = Trial(index.before, cost.since)
        elif cost.version == index.version and names & cost.shape.names:
            other_trials.append(Trial(cost.before, cost.since))
    return own, other_trials
