"""The stored costs of queries and the stored learned indexes of classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from objects.core.indexes.decisions import Cost, Suggestion, Trial, suggestions
from objects.core.indexes.shapes import IndexFields, Shape, decode
from objects.core.names import FieldName
from objects.database.statements import Row, fetch
from objects.sql.fields import learned_expression
from objects.sql.tables import ClassTable

MAX_SHAPES: Final = 100
"""Shapes of a class that the upkeep leaves; those that cost least go first."""
MAX_FAILED: Final = 32
KEEP_DAYS: Final = 14
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


_SHAPES: Final = """
SELECT shape, version, window_start > statement_timestamp() - interval '1 day',
       window_calls, window_seconds, window_results, calls, seconds, results, before_calls,
       before_seconds, extract(epoch FROM last_at)
FROM objects_query_shape WHERE class_id = %s ORDER BY window_seconds + seconds DESC, id
"""


def shapes(class_id: int) -> list[ShapeCost]:
    """Return the shapes of the queries of a class, the costliest first."""
    costs = []
    for row in fetch(_SHAPES, (class_id,), prepare=False):
        shape = decode(row[0])
        if shape is None:
            continue
        recent = _cost(row[3:6]) if row[2] == "t" else Cost()
        before = Cost(int(row[9]), float(row[10]))
        costs.append(ShapeCost(shape, int(row[1]), recent, _cost(row[6:9]), before, _time(row[11])))
    return costs


def _cost(row: Row) -> Cost:
    return Cost(int(row[0]), float(row[1]), int(row[2]))


def _time(epoch: str) -> datetime:
    return datetime.fromtimestamp(float(epoch), UTC)


def restart(class_id: int, fields: Iterable[FieldName], version: int) -> None:
    """Count the queries that read one of these fields from this version of the class on.

    For the transaction that gives the class the version, after its indexes have changed.
    """
    fetch(
        "UPDATE objects_query_shape SET version = %s, before_calls = CASE WHEN calls > 0 THEN calls"
        " ELSE before_calls END, before_seconds = CASE WHEN calls > 0 THEN seconds"
        " ELSE before_seconds END, calls = 0, seconds = 0, results = 0, window_calls = 0,"
        " window_seconds = 0, window_results = 0, window_start = statement_timestamp()"
        " WHERE class_id = %s AND (SELECT bool_or(shape LIKE '%%' || f || '%%')"
        " FROM unnest(%s::text[]) f)",
        (version, class_id, [_pattern(name) for name in sorted(fields)]),
        prepare=False,
    )


def forget_recent(class_id: int) -> None:
    """Let the queries of a class count again for what to build, after its indexes have changed."""
    fetch(
        "UPDATE objects_query_shape SET window_calls = 0, window_seconds = 0, window_results = 0,"
        " window_start = statement_timestamp() WHERE class_id = %s",
        (class_id,),
        prepare=False,
    )


def _pattern(name: str) -> str:
    # Also the end of a longer name: that only means counting from here on again.
    return name.replace("_", r"\_") + '"'


def forget_shapes(class_id: int | None = None) -> int:
    """Forget what queries of the class, or of all classes, cost; how many shapes that were."""
    rows = fetch(
        "DELETE FROM objects_query_shape WHERE %s::bigint IS NULL OR class_id = %s RETURNING 1",
        (class_id, class_id),
        prepare=False,
    )
    return len(rows)


def trim() -> None:
    """Remove query shapes that are no longer used, and the cheapest beyond the limit."""
    for statement in _TRIM:
        fetch(statement, (), prepare=False)


_TRIM: Final = (
    "DELETE FROM objects_query_shape s WHERE"
    f" last_at < statement_timestamp() - interval '{KEEP_DAYS} days'"
    " OR NOT EXISTS (SELECT FROM objects_class c WHERE c.id = s.class_id)",
    "DELETE FROM objects_query_shape WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER"
    " (PARTITION BY class_id ORDER BY slow_seconds + CASE WHEN window_start >"
    " statement_timestamp() - interval '1 day' THEN window_seconds ELSE 0 END DESC, last_at DESC)"
    " AS place"
    " FROM objects_query_shape s WHERE NOT EXISTS (SELECT FROM objects_learned_index l"
    " WHERE l.class_id = s.class_id AND l.shape = s.shape AND l.state <> 'failed')) r"
    f" WHERE place > {MAX_SHAPES})",
    "DELETE FROM objects_learned_index l WHERE"
    " NOT EXISTS (SELECT FROM objects_class c WHERE c.id = l.class_id)"
    f" OR state = 'failed' AND retry_at < statement_timestamp() - interval '{KEEP_DAYS} days'",
    "DELETE FROM objects_learned_index WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER"
    " (PARTITION BY class_id ORDER BY started_at DESC) AS place"
    f" FROM objects_learned_index WHERE state = 'failed') r WHERE place > {MAX_FAILED})",
)


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


_LEARNED: Final = """
SELECT l.id, l.class_id, l.name, l.fields, l.state, l.shape, l.reason, l.attempts,
       COALESCE(l.retry_at <= statement_timestamp(), true), l.version, l.before_calls,
       l.before_seconds, l.build_seconds, extract(epoch FROM l.built_at), l.scans,
       extract(epoch FROM l.used_at), pg_relation_size(i.indexrelid), i.indisvalid,
       COALESCE(pg_stat_get_numscans(i.indexrelid), 0)
FROM objects_learned_index l LEFT JOIN pg_index i ON i.indexrelid = to_regclass(l.name)
WHERE %s::bigint IS NULL OR l.class_id = %s
ORDER BY l.class_id, l.id
"""


def learned(class_id: int | None = None) -> list[Learned]:
    """Return the learned indexes of the class, or of all classes, in every state."""
    return [_learned(row) for row in fetch(_LEARNED, (class_id, class_id), prepare=False)]


def _learned(row: Row) -> Learned:
    return Learned(
        id=int(row[0]),
        class_id=int(row[1]),
        name=row[2],
        fields=tuple((FieldName(name), way) for name, way in msgspec.json.decode(row[3])),
        state=row[4],
        shape=decode(row[5]) or Shape(()),
        reason=row[6],
        attempts=int(row[7]),
        may_retry=row[8] == "t",
        version=int(row[9]),
        before=Cost(int(row[10]), float(row[11])),
        build_seconds=None if row[12] is None else float(row[12]),
        built_at=None if row[13] is None else _time(row[13]),
        scans=int(row[14]),
        used_at=None if row[15] is None else _time(row[15]),
        size=None if row[16] is None else int(row[16]),
        is_valid=row[17] == "t",
        scans_now=int(row[18]),
    )


def note_use() -> None:
    """Store when each learned index was used last, by the counters of PostgreSQL.

    A counter that is smaller than before was reset: only what it has counted since is use. Times
    in which nobody read the counters (a service that was stopped, an archive that was restored)
    don't count as unused.
    """
    fetch(
        "UPDATE objects_learned_index SET used_at = used_at + CASE WHEN checked_at <"
        " statement_timestamp() - interval '1 hour' THEN statement_timestamp() - checked_at"
        " ELSE interval '0' END, checked_at = statement_timestamp() WHERE state = 'valid'"
        " AND COALESCE(checked_at < statement_timestamp() - interval '10 minutes', true)",
        (),
        prepare=False,
    )
    fetch(
        "UPDATE objects_learned_index l SET scans = s.idx_scan, used_at = CASE"
        " WHEN s.idx_scan > l.scans OR (s.idx_scan < l.scans AND s.idx_scan > 0)"
        " THEN statement_timestamp() ELSE l.used_at END"
        " FROM pg_stat_user_indexes s WHERE s.indexrelid = to_regclass(l.name)"
        " AND s.idx_scan <> l.scans",
        (),
        prepare=False,
    )


# -- Suggestions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Size:
    """Objects of a class, about, and the bytes that they take without indexes."""

    rows: float
    size: int


def size_of(table: ClassTable) -> Size:
    """Return the size of a class by PostgreSQL's statistics."""
    rows = fetch(
        "SELECT greatest(c.reltuples, pg_stat_get_live_tuples(c.oid)), pg_table_size(c.oid)"
        " FROM pg_class c WHERE c.oid = to_regclass(%s)",
        (table.storage,),
        prepare=False,
        is_read=True,
    )
    return Size(float(rows[0][0]), int(rows[0][1])) if rows else Size(0, 0)


def estimated_size(table: ClassTable, fields: IndexFields, rows: float) -> float:
    """Bytes that an index on these fields will have, by some objects of the class."""
    widths = [
        f"avg(pg_column_size({learned_expression(table, name)}))"
        for name, direction in fields
        if direction != "2dsphere"
    ]
    if not widths:
        return rows * _PLACE * _FILL
    sums = " + ".join(f"COALESCE({width}, 0)" for width in widths)
    sample = fetch(
        f"SELECT {sums} FROM (SELECT * FROM {table.storage} LIMIT {_SAMPLE}) s", (), prepare=False
    )
    return rows * (_ENTRY + float(sample[0][0])) * _FILL


def suggestions_for(
    table: ClassTable,
    costs: Sequence[ShapeCost],
    indexes: Sequence[Learned],
    size: Size | None = None,
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
