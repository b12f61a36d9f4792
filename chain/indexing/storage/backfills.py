"""The statements on ``chain_backfill`` with which backfills store how far they have come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows

_LONGEST_PAUSE: Final = 60  # seconds


class Moved(NamedTuple):
    """A backfill that was moved."""

    id: int
    address: str
    first_block: int
    last_block: int


_MOVE: Final = f"""
UPDATE chain_backfill b
   SET next_block = %(next)s, events = b.events + n.events, step = %(step)s,
       trouble = NULL, failures = 0, paused_until = NULL
  FROM unnest(%(ids)s::bigint[], %(events)s::bigint[]) AS n (id, events)
 WHERE b.id = n.id AND b.next_block = %(first)s AND b.done_at IS NULL AND NOT b.seeking
RETURNING {select_list(Moved, "b")}
"""


def commit_without_waiting() -> None:
    """Have this transaction commit without waiting for the disk.

    A crash of PostgreSQL loses the last moments, events and progress together, and they are read
    again.
    """
    fetch("SET LOCAL synchronous_commit = off", (), prepare=False)


def move(
    ids: Sequence[int], events: Sequence[int], *, first: int, next_block: int, step: int
) -> list[Moved]:
    """Move the backfills that are open at ``first`` to ``next_block``, and add the numbers of
    their events; return those that were."""
    return fetch_rows(
        Moved,
        _MOVE,
        {"next": next_block, "step": step, "ids": [*ids], "events": [*events], "first": first},
        prepare=True,
    )


def finish(ids: Sequence[int]) -> None:
    """Mark backfills as done."""
    if ids:
        fetch(
            "UPDATE chain_backfill SET done_at = statement_timestamp()"
            " WHERE id = ANY(%(ids)s::bigint[])",
            {"ids": [*ids]},
            prepare=True,
        )


def note_trouble(ids: Sequence[int], trouble: str) -> None:
    """Store why backfills can't continue, and pause them: longer each time, a minute at most."""
    fetch(
        "UPDATE chain_backfill SET trouble = %(trouble)s, failures = failures + 1, paused_until ="
        " statement_timestamp()"
        " + make_interval(secs => least(%(longest)s, power(2, least(failures, 10))))"
        " WHERE id = ANY(%(ids)s::bigint[]) AND done_at IS NULL",
        {"trouble": trouble, "longest": _LONGEST_PAUSE, "ids": [*ids]},
        prepare=True,
    )
