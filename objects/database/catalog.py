"""PostgreSQL's catalogs and statistics: what they say about tables, indexes and other sessions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from backend.kernel.connections.advisory_locks import AdvisoryLock
from objects.database.statements import fetch, fetch_rows, fetch_value, fetch_values


class IndexState(NamedTuple):
    """An index of the database. ``scans`` counts until PostgreSQL resets its statistics.

    ``size`` is in bytes, None if the index is dropped meanwhile. PostgreSQL uses an index only
    while ``is_valid``; an interrupted build leaves one that isn't.
    """

    name: str
    is_valid: bool
    is_unique: bool
    size: int | None
    scans: int


class ClassIndex(NamedTuple):
    """The name of an index, and the id of the class that the name has in it."""

    class_id: int
    name: str


class TableLock(NamedTuple):
    """A lock of a table that a session has, and for how many seconds its transaction runs."""

    pid: int
    process: str
    seconds: float
    is_vacuum: bool


class TableTrigger(NamedTuple):
    """A table, and one of its triggers as the statement that creates it; None: it has none."""

    relation: str
    name: str | None
    definition: str | None


class TableSize(NamedTuple):
    """Rows of a table, about, and the bytes that they take without indexes."""

    rows: float
    size: int


# -- Indexes --------------------------------------------------------------------------------------

_INDEX_STATES: Final = """
SELECT n.name, i.indisvalid, i.indisunique, pg_relation_size(i.indexrelid),
       COALESCE(pg_stat_get_numscans(i.indexrelid), 0)
FROM unnest(%(names)s::text[]) AS n (name)
JOIN pg_index i ON i.indexrelid = to_regclass(quote_ident(n.name))
"""
_NAMES_OF_TABLE: Final = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(%(relation)s) AND starts_with(c.relname, %(prefix)s)
ORDER BY c.relname
"""
_OF_CLASSES: Final = """
SELECT substring(c.relname FROM %(pattern)s)::bigint AS class_id, c.relname
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relname ~ %(pattern)s AND pg_table_is_visible(c.oid)
ORDER BY class_id, c.relname
"""
_NAMES_BY_DEFINITION: Final = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(%(relation)s)
AND right(pg_get_indexdef(i.indexrelid), length(%(definition)s)) = %(definition)s
ORDER BY c.relname
"""
_TABLES_BY_DEFINITION: Final = """
SELECT DISTINCT '"' || t.relname || '"' FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE a.amname = 'gin' AND i.indexprs IS NULL AND pg_table_is_visible(t.oid)
AND right(pg_get_indexdef(i.indexrelid), length(%(definition)s)) = %(definition)s
"""
# Only what takes long is ended: other statements of the session go on.
_CANCEL_BUILDS: Final = """
SELECT pg_cancel_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.mode = 'ExclusiveLock'
AND (l.classid, l.objid, l.objsubid) = (%(class)s, %(object)s, 2)
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND a.state = 'active' AND a.query ~ ('^(CREATE|DROP) INDEX CONCURRENTLY .*objects_auto_|^ANALYZE'
    '|^(CREATE|DROP) INDEX CONCURRENTLY IF (NOT )?EXISTS "objects_[a-z0-9_]+_fields_[0-9]+"')
"""


def index_states(names: Collection[str]) -> dict[str, IndexState]:
    """Return those of the indexes that the database has, by name."""
    if not names:
        return {}
    rows = fetch_rows(IndexState, _INDEX_STATES, {"names": sorted(names)}, prepare=False)
    return {row.name: row for row in rows}


def index_names(relation: str, prefix: str) -> list[str]:
    """Return the names of a table's indexes that begin with the prefix. ``relation`` is quoted."""
    params = {"relation": relation, "prefix": prefix}
    return fetch_values(str, _NAMES_OF_TABLE, params, prepare=False)


def indexes_of_classes(pattern: str) -> list[ClassIndex]:
    """Return the indexes whose names match the pattern, in which a group is the class's id."""
    return fetch_rows(ClassIndex, _OF_CLASSES, {"pattern": pattern}, prepare=False)


def index_names_of(relation: str, definition: str) -> list[str]:
    """Return the names of a table's indexes whose definition ends so. ``relation`` is quoted."""
    params = {"relation": relation, "definition": definition}
    return fetch_values(str, _NAMES_BY_DEFINITION, params, prepare=False)


def tables_with_index(definition: str) -> list[str]:
    """Return the quoted names of the tables that have a GIN index whose definition ends so.

    For indexes on columns; those on expressions aren't looked at.
    """
    return fetch_values(str, _TABLES_BY_DEFINITION, {"definition": definition}, prepare=False)


def cancel_learned_builds(lock: AdvisoryLock) -> None:
    """Cancel the build of an index that no request waits for, by the session with the lock."""
    class_key, object_key = lock.parameters
    fetch(_CANCEL_BUILDS, {"class": class_key, "object": object_key}, prepare=False)


# -- Tables ---------------------------------------------------------------------------------------

_TABLE_SIZE: Final = """
SELECT greatest(c.reltuples, pg_stat_get_live_tuples(c.oid)), pg_table_size(c.oid)
FROM pg_class c WHERE c.oid = to_regclass(%(relation)s)
"""
# PostgreSQL analyzes no table with fewer than 50 changes (reltuples is -1), but counts its live
# rows. These counts are lost in a crash, so 0 of a table with content is no estimate.
_ROW_ESTIMATE: Final = """(
    SELECT CASE
        WHEN reltuples >= 0 THEN reltuples::bigint
        WHEN pg_relation_size(oid) = 0 THEN 0
        ELSE COALESCE(NULLIF(pg_stat_get_live_tuples(oid), 0), -1)
    END
    FROM pg_class WHERE oid = {relation}
)"""


# Autovacuum runs as no user. Locks of readers are in the way of the strongest lock alone.
_LOCKS_OF_TABLE: Final = """
SELECT l.pid, COALESCE(a.application_name, ''),
       COALESCE(extract(epoch FROM clock_timestamp() - a.xact_start), 0),
       l.mode = 'ShareUpdateExclusiveLock' AND a.usesysid IS NULL
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.relation = to_regclass(%(relation)s) AND l.granted
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND l.pid <> pg_backend_pid()
AND (%(with_readers)s OR l.mode NOT IN ('AccessShareLock', 'RowShareLock'))
ORDER BY a.xact_start
"""
_PARTITIONS_WITH_COMMENT: Final = """
SELECT inhrelid::regclass::text FROM pg_inherits
WHERE inhparent = to_regclass(%(parent)s)
AND obj_description(inhrelid, 'pg_class') = %(comment)s
ORDER BY inhrelid
"""


def locks_of_table(relation: str, *, with_readers: bool) -> list[TableLock]:
    """Return the locks that other sessions have of a table, of the oldest transaction first."""
    params = {"relation": relation, "with_readers": with_readers}
    return fetch_rows(TableLock, _LOCKS_OF_TABLE, params, prepare=False)


def partitions_with_comment(parent: str, comment: str) -> list[str]:
    """Return the quoted names of those partitions of a table that have this comment."""
    params = {"parent": parent, "comment": comment}
    return fetch_values(str, _PARTITIONS_WITH_COMMENT, params, prepare=False)


def missing_tables(relations: Collection[str]) -> list[str]:
    """Return those of the tables that the database doesn't have. Names are quoted."""
    statement = "SELECT n FROM unnest(%(names)s::text[]) AS n WHERE to_regclass(n) IS NULL"
    return fetch_values(str, statement, {"names": list(relations)}, prepare=False)


def table_size(relation: str) -> TableSize:
    """Return the size of a table by PostgreSQL's statistics; zeros without it."""
    params = {"relation": relation}
    rows = fetch_rows(TableSize, _TABLE_SIZE, params, prepare=False, is_read=True)
    return rows[0] if rows else TableSize(0, 0)


def row_estimate(relation: str) -> str:
    """Return SQL for the estimated rows of a table, -1 without an estimate.

    ``relation`` is SQL for its ``regclass``.
    """
    return _ROW_ESTIMATE.format(relation=relation)


def average_size(relation: str, expressions: Sequence[str], sample: int) -> float:
    """Return the bytes of the expressions together, on average over some rows of a table."""
    widths = (f"COALESCE(avg(pg_column_size({expression})), 0)" for expression in expressions)
    statement = (
        f"SELECT {' + '.join(widths)} FROM (SELECT * FROM {relation} LIMIT %(sample)s::bigint) s"
    )
    return fetch_value(float, statement, {"sample": sample}, prepare=False) or 0.0


# -- Triggers -------------------------------------------------------------------------------------

_TRIGGERS: Final = """
SELECT r.name, t.tgname, pg_get_triggerdef(t.oid)
FROM unnest(%(relations)s::text[]) AS r (name)
LEFT JOIN pg_trigger t ON t.tgrelid = to_regclass(r.name) AND NOT t.tgisinternal
WHERE to_regclass(r.name) IS NOT NULL
"""
_WITHOUT_TRIGGER: Final = """
SELECT r.relation::text
FROM (SELECT to_regclass(%(parent)s) AS relation
      UNION ALL
      SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = to_regclass(%(parent)s)) r
WHERE NOT EXISTS (
    SELECT FROM pg_trigger t
    WHERE t.tgrelid = r.relation AND t.tgfoid = to_regproc(%(function)s)
    AND t.tgenabled IN ('O', 'A'))
ORDER BY 1
"""


def has_table(name: str) -> bool:
    """Return whether the database has a table of this name."""
    statement = "SELECT to_regclass(%(name)s) IS NOT NULL"
    return fetch_value(bool, statement, {"name": name}, prepare=False) or False


def triggers(relations: Collection[str]) -> list[TableTrigger]:
    """Return the triggers of those of the tables that exist. ``relations`` are quoted."""
    params = {"relations": list(relations)}
    return fetch_rows(TableTrigger, _TRIGGERS, params, prepare=False)


def partitions_without_trigger(parent: str, function: str) -> list[str]:
    """Return those of a table and its partitions that have no enabled trigger of a function."""
    params = {"parent": parent, "function": function}
    return fetch_values(str, _WITHOUT_TRIGGER, params, prepare=False)
