"""Removing changes that everybody has had time to read.

A transaction may take longer than changes are kept, so their age is that of their commit. Each
trimming leaves a mark, a snapshot; the next one, ``KEPT`` seconds later or more, removes what was
visible in that. So a reader that reads at least once between any two of them misses nothing, and
one that doesn't sees it by the number of the mark (``generation``).
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from objects.database.statements import fetch

KEPT: Final = 60.0
"""Seconds for which a change can be read, at least, from its commit on."""

_TRIM = f"""
WITH due AS MATERIALIZED (
    SELECT mark FROM objects_change_trim
    WHERE id = 1 AND marked_at < clock_timestamp() - interval '{KEPT} s' FOR UPDATE SKIP LOCKED),
gone AS (
    DELETE FROM objects_change c USING due
    WHERE c.txid < pg_snapshot_xmax(due.mark) AND pg_visible_in_snapshot(c.txid, due.mark)),
forgotten AS (
    DELETE FROM objects_interest i USING due
    WHERE i.until < clock_timestamp() - interval '{KEPT} s')
UPDATE objects_change_trim t
SET generation = t.generation + 1, mark = pg_current_snapshot(), marked_at = clock_timestamp()
FROM due WHERE t.id = 1
"""


def trim() -> None:
    """Remove what was committed at least ``KEPT`` seconds ago, if it is time again."""
    with transaction.atomic():
        # It takes as long as it takes: otherwise there would be more next time.
        fetch("SET LOCAL statement_timeout = 0", (), prepare=False)
        fetch(_TRIM, (), prepare=False)
        fetch(
            "INSERT INTO objects_change_trim (id, generation, mark, marked_at)"
            " SELECT 1, 1, pg_current_snapshot(), clock_timestamp()"
            " WHERE NOT EXISTS (SELECT FROM objects_change_trim) ON CONFLICT DO NOTHING",
            (),
            prepare=False,
        )
