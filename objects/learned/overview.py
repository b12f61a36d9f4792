"""The indexes of a class with their evidence, for the admin and ``manage.py indexes``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.kernel.errors import InvalidQuery
from backend.settings.conf import service_settings
from objects.core.indexes.decisions import Cost, Suggestion
from objects.core.indexes.shapes import IndexFields
from objects.database import catalog, maintenance
from objects.database.catalog import TableSize
from objects.database.orm import orm_queries
from objects.definitions import indexes
from objects.learned import builds, drops, evidence, locks, shape_counts
from objects.learned.evidence import Learned
from objects.learned.models import LearnedIndex
from objects.sql.tables import ClassTable

DROPPED_DAYS = 7
"""Days for which an index that a person has dropped isn't built again."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared index. ``size`` is in bytes, None if it isn't built."""

    name: str
    fields: str
    unique: bool
    size: int | None


@dataclass(frozen=True, slots=True)
class LearnedView:
    """A learned index, and the queries that it was built for: before it, and since."""

    name: str
    fields: str
    state: str
    shape: str
    reason: str
    before: Cost
    after: Cost
    size: int | None
    built_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class SuggestionView:
    """An index that isn't there, and the queries that would be faster with it."""

    key: str
    fields: str
    shape: str
    cost: Cost
    size: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The indexes of a class. ``suggestions`` are empty with ``AUTO_INDEX=off``."""

    size: TableSize
    declared: list[Declared]
    learned: list[LearnedView]
    suggestions: list[SuggestionView]


def overview(table: ClassTable) -> Overview:
    """Return the indexes that a class has and those that its queries suggest."""
    shape_counts.flush()
    size = evidence.size_of(table)
    costs = evidence.shapes(table.class_id)
    since = {cost.shape: cost.since for cost in costs}
    learned = evidence.learned(table.class_id)
    return Overview(
        size,
        _declared(table),
        [
            LearnedView(
                name=index.name,
                fields=fields_text(index.fields),
                state=index.state,
                shape=str(index.shape),
                reason=index.reason,
                before=index.before,
                after=since.get(index.shape, Cost()) if index.state == "valid" else Cost(),
                size=index.size,
                built_at=index.built_at if index.state == "valid" else None,
                used_at=index.used_at if index.state == "valid" else None,
            )
            for index in learned
        ],
        [
            SuggestionView(
                key=builds.index_name(table.class_id, suggestion.fields),
                fields=fields_text(suggestion.fields),
                shape=str(suggestion.shape),
                cost=suggestion.cost,
                size=round(evidence.estimated_size(table, suggestion.fields, size.rows)),
            )
            for suggestion in _suggestions(table, learned, size)
        ],
    )


def _suggestions(
    table: ClassTable, learned: Sequence[Learned], size: TableSize | None = None
) -> list[Suggestion]:
    if service_settings.AUTO_INDEX == "off":
        return []
    return evidence.suggestions_for(table, evidence.shapes(table.class_id), learned, size)


def _declared(table: ClassTable) -> list[Declared]:
    declared = list(table.schema.index_declarations.values())
    names = [indexes.index_name(table, index) for index in declared]
    states = catalog.index_states(names).values()
    sizes = {state.name: state.size for state in states if state.is_valid}
    return [
        Declared(index.name, fields_text(index.fields), index.unique, sizes.get(name))
        for index, name in zip(declared, names, strict=True)
    ]


def fields_text(fields: IndexFields) -> str:
    """Fields of an index as ``create_class --index`` takes them: ``status,-createdAt``."""
    texts = {1: "{}", -1: "-{}", "text": "{}:text", "2dsphere": "{}:2dsphere"}
    return ",".join(texts[direction].format(name) for name, direction in fields)


def build(table: ClassTable, key: str | None = None) -> bool:
    """Build a suggested index of a class, and return whether it was built.

    Without ``key``, the most valuable one.

    Raises ``InvalidQuery`` if none is suggested under this key, or if another process is building,
    and ``UnderMaintenance``.
    """
    maintenance.check()
    learned = evidence.learned(table.class_id)
    chosen = [
        suggestion
        for suggestion in evidence.suggestions_for(table, evidence.shapes(table.class_id), learned)
        if key in (None, builds.index_name(table.class_id, suggestion.fields))
    ]
    if not chosen:
        if key is None:
            return False
        raise InvalidQuery("This index is not suggested any more.")
    with locks.only_run() as is_ours:
        if not is_ours:
            raise InvalidQuery("Another process is building an index; try again when it is done.")
        return builds.build(table, chosen[0])


def drop(table: ClassTable, name: str) -> None:
    """Drop a learned index, for at least ``DROPPED_DAYS``.

    Raises ``InvalidQuery`` if the class has none of this name, and ``UnderMaintenance``.
    """
    index = next((index for index in evidence.learned(table.class_id) if index.name == name), None)
    if index is None:
        raise InvalidQuery(f"{table.class_name} has no learned index of this name.")
    drops.drop(table.class_name, index, "dropped by hand", DROPPED_DAYS)


def forget(table: ClassTable) -> int:
    """Forget what queries of a class cost and why indexes failed; how many shapes that were.

    Indexes that are valid stay. Raises ``UnderMaintenance``.
    """
    with maintenance.writing():
        with orm_queries():
            failed = LearnedIndex.objects.filter(state=LearnedIndex.FAILED)
            failed.filter(class_id=table.class_id).delete()
        return evidence.forget_shapes(table.class_id)


def age(moment: datetime | None) -> str:
    """Return the time since a moment, in words."""
    if moment is None:
        return "never"
    seconds = int((datetime.now(UTC) - moment).total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = seconds // length
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"
