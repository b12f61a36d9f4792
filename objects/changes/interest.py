"""The classes whose changes are captured, and whether capturing has been continuous.

Changes of a class are captured until its row of ``objects_interest`` expires. ``since`` is when
capturing began, and identifies the row: a reader that finds another ``since``, or no row, has
missed changes in between.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Final

from objects.core.names import check_class_name
from objects.database.statements import fetch
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
FROM unnest(%s::text[]) AS name ORDER BY name
ON CONFLICT (class_name) DO UPDATE SET
    since = CASE WHEN i.until > clock_timestamp() + interval '{_MARGIN} s'
                 THEN i.since ELSE EXCLUDED.since END,
    until = GREATEST(i.until, EXCLUDED.until)
RETURNING class_name, since::text
"""

# One after another, so that readers don't wait for each other in circles.
_ASK = """
WITH theirs AS MATERIALIZED (
    SELECT class_name FROM objects_interest WHERE class_name = ANY(%s::text[]) AND asleep <> %s
    ORDER BY class_name FOR UPDATE)
UPDATE objects_interest i SET asleep = %s FROM theirs WHERE i.class_name = theirs.class_name
"""

# Those that may have written without having been captured: they hold a lock that writers take, and
# began before the class was wanted (a second for the commit of that). A class that isn't there has
# a name, which is locked while the class is created.
_WRITERS = """
SELECT DISTINCT w.name, l.virtualtransaction
FROM unnest(%s::text[], %s::text[], %s::timestamptz[]) AS w(name, relation, since)
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


def prolong(class_names: Collection[str]) -> dict[str, str]:
    """Capture these classes for another ``WANTED_FOR`` seconds; return when each began, as text."""
    rows = fetch(_PROLONG, (sorted(class_names),), prepare=True)
    return {row[0]: row[1] for row in rows}


def request_notifications(class_names: Collection[str]) -> None:
    """Make writers of these classes notify readers, because a reader waits."""
    fetch(_ASK, ([*class_names], True, True), prepare=True)


def stop_notifications(class_names: Collection[str]) -> None:
    """Make writers of these classes stop notifying: the readers poll."""
    fetch(_ASK, ([*class_names], False, False), prepare=True)


Writer = tuple[str, str]
"""A class, and the id of a transaction that may have written to it without being captured."""


def writers_left(since: Mapping[str, str]) -> set[Writer]:
    """Wait for transactions that wrote to these classes before capturing began.

    Returns those that are still running, for ``ended``.
    """
    end = time.monotonic() + _PATIENCE
    places = [
        (name, table.storage if (table := registry.find(check_class_name(name))) else None, began)
        for name, began in since.items()
    ]
    columns = [[*column] for column in zip(*places, strict=True)]
    left: set[Writer] | None = None
    while True:
        rows = fetch(_WRITERS, columns, prepare=False)
        writers = {(row[0], row[1]) for row in rows}
        left = writers if left is None else left & writers
        if not left or time.monotonic() >= end:
            return left
        time.sleep(_POLL)


def ended(writers: set[Writer]) -> set[Writer]:
    """Those of them that are over."""
    rows = fetch(
        "SELECT DISTINCT virtualtransaction FROM pg_locks WHERE virtualtransaction = ANY(%s)",
        ([*{transaction for _, transaction in writers}],),
        prepare=True,
    )
    running = {row[0] for row in rows}
    return {writer for writer in writers if writer[1] not in running}
