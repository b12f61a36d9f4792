"""The classes whose changes are captured, and whether capturing has been continuous.

Changes of a class are captured until its row of ``objects_interest`` expires. ``since`` is when
capturing began, and identifies the row: a reader that finds another ``since``, or no row, has
missed changes in between.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from objects.core.names import ClassName, check_class_name
from objects.database.statements import fetch, fetch_rows, fetch_values
from objects.definitions import registry

WANTED_FOR: Final = 60.0
"""Seconds for which a class is captured after ``Reader.want`` has named it."""

# A row that has almost run out counts as gone: until it is prolonged, and that is seen by all, it
# might be.
_MARGIN: Final = 5.0
_PATIENCE: Final = 1.0  # seconds; who writes for longer is waited for in the background
_POLL: Final = 0.002

_PROLONG = f"""
INSERT INTO objects_interest AS i (class_name, since, until)
SELECT name, clock_timestamp(), clock_timestamp() + interval '{WANTED_FOR} s'
FROM unnest(%(names)s::text[]) AS name ORDER BY name
ON CONFLICT (class_name) DO UPDATE SET
    since = CASE WHEN i.until > clock_timestamp() + interval '{_MARGIN} s'
                 THEN i.since ELSE EXCLUDED.since END,
    until = GREATEST(i.until, EXCLUDED.until)
RETURNING class_name, since::text
"""

# One after another, so that readers don't wait for each other in circles.
_ASK = """
WITH theirs AS MATERIALIZED (
    SELECT class_name FROM objects_interest WHERE class_name = ANY(%(names)s::text[])
    AND asleep <> %(asleep)s ORDER BY class_name FOR UPDATE)
UPDATE objects_interest i SET asleep = %(asleep)s FROM theirs WHERE i.class_name = theirs.class_name
"""

# Those that may have written without having been captured: they hold a lock that writers take, and
# began before the class was wanted (a second for the commit of that). A class that isn't there has
# a name, which is locked while the class is created.
_WRITERS = """
SELECT DISTINCT w.name, l.virtualtransaction
FROM unnest(%(names)s::text[], %(relations)s::text[], %(since)s::timestamptz[])
    AS w(name, relation, since)
CROSS JOIN LATERAL (SELECT hashtextextended('class:' || w.name, 0) AS key) k
JOIN pg_locks l ON l.locktype = 'relation' AND l.relation = to_regclass(w.relation)
        AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                       'AccessExclusiveLock')
    OR l.locktype = 'advisory' AND l.objsubid = 1 AND l.classid::bigint = (k.key >> 32) & 4294967295
        AND l.objid::bigint = k.key & 4294967295
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (a.xact_start IS NULL OR a.xact_start < w.since + interval '1 s')
"""

_RUNNING = """
SELECT DISTINCT virtualtransaction FROM pg_locks WHERE virtualtransaction = ANY(%(transactions)s)
"""
_IS_WANTED = """
SELECT FROM objects_interest WHERE class_name = %(name)s AND until > statement_timestamp()
"""


class _Interest(NamedTuple):
    """A row of ``objects_interest``; the time is PostgreSQL's text, to the last digit."""

    class_name: str
    since: str


def prolong(class_names: Collection[str]) -> dict[str, str]:
    """Capture these classes for another ``WANTED_FOR`` seconds; return when each began, as text."""
    rows = fetch_rows(_Interest, _PROLONG, {"names": sorted(class_names)}, prepare=True)
    return {row.class_name: row.since for row in rows}


def is_wanted(class_name: ClassName) -> bool:
    """Return whether changes of the class are captured at the moment."""
    return bool(fetch(_IS_WANTED, {"name": class_name}, prepare=True))


def request_notifications(class_names: Collection[str]) -> None:
    """Make writers of these classes notify readers, because a reader waits."""
    fetch(_ASK, {"names": [*class_names], "asleep": True}, prepare=True)


def stop_notifications(class_names: Collection[str]) -> None:
    """Make writers of these classes stop notifying: the readers poll."""
    fetch(_ASK, {"names": [*class_names], "asleep": False}, prepare=True)


class Writer(NamedTuple):
    """A class, and the id of a transaction that may have written to it without being captured."""

    class_name: str
    transaction: str


def writers_left(since: Mapping[str, str]) -> set[Writer]:
    """Wait for transactions that wrote to these classes before capturing began.

    Returns those that are still running, for ``ended``.
    """
    end = time.monotonic() + _PATIENCE
    tables = [registry.find(check_class_name(name)) for name in since]
    params = {
        "names": [*since],
        "relations": [table.storage if table else None for table in tables],
        "since": [*since.values()],
    }
    left: set[Writer] | None = None
    while True:
        writers = set(fetch_rows(Writer, _WRITERS, params, prepare=False))
        left = writers if left is None else left & writers
        if not left or time.monotonic() >= end:
            return left
        time.sleep(_POLL)


def ended(writers: set[Writer]) -> set[Writer]:
    """Those of them that are over."""
    transactions = {writer.transaction for writer in writers}
    running = set(fetch_values(str, _RUNNING, {"transactions": [*transactions]}, prepare=True))
    return {writer for writer in writers if writer.transaction not in running}
