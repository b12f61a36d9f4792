"""Committing what a backfill has read, together with how far it has come."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from django.db import transaction

from chain.core.failures import NodeFailure
from chain.indexing.coverage import note_read
from chain.indexing.storage.events import Ready, store_ready
from chain.models import Backfill
from chain.models.stored import BlockRow
from objects.database import maintenance
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows

_LONGEST_PAUSE = 60  # seconds


class Lost(Exception):
    """Things are not any more as they were when reading began: contracts or ABIs have changed,
    another process has moved the rows, a block is not in the chain any more. What was read is
    dropped."""


class Group:
    """Open rows of a network that stand at the same block. ``stop`` is a block at which others
    stand that can be read together with them, or None."""

    def __init__(self, network_id: int, rows: Sequence[Backfill], stop: int | None) -> None:
        self.network_id = network_id
        self.ids = [row.pk for row in rows]
        self.addresses = [row.address for row in rows]
        self.first: int = rows[0].next_block
        self.seeking: bool = rows[0].seeking
        self.begin: int = min(row.first_block for row in rows)
        self.step: int = max(row.step for row in rows)
        self.is_empty = not any(row.events for row in rows)
        """Whether no event of theirs has been stored yet."""
        last = min(row.last_block for row in rows)
        self.last: int = last if stop is None else min(last, stop - 1)


Block = tuple[int, str]
"""Height and hash."""


class Part(NamedTuple):
    """Blocks that have been read: up to ``last``, from where the part before ended."""

    last: int
    events: Ready


class _CursorRow(NamedTuple):
    contracts: int
    number: int | None
    halted: str | None


class _Moved(NamedTuple):
    id: int
    address: str
    first_block: int
    last_block: int


_LOCK_CURSOR = f"""
SELECT {select_list(_CursorRow, "c")} FROM chain_cursor c
 WHERE network_id = %(network)s FOR UPDATE
"""
_BLOCKS = f"""
SELECT {select_list(BlockRow, "b")} FROM chain_block b WHERE network_id = %(network)s AND canonical
"""
# Should PostgreSQL crash now, it loses the last moments, events and place together, and they are
# read again: nothing is worth waiting for the disk.
_WITHOUT_WAITING = "SET LOCAL synchronous_commit = off"
_MOVE = f"""
UPDATE chain_backfill b
   SET next_block = %(next)s, events = b.events + n.events, step = %(step)s,
       trouble = NULL, failures = 0, paused_until = NULL
  FROM unnest(%(ids)s::bigint[], %(events)s::bigint[]) AS n (id, events)
 WHERE b.id = n.id AND b.next_block = %(first)s AND b.done_at IS NULL AND NOT b.seeking
RETURNING {select_list(_Moved, "b")}
"""


def commit(
    group: Group, parts: Sequence[Part], version: int, step: int, anchor: Block | None
) -> None:
    """Store the events of final blocks, and move the rows behind the last of them. ``Lost`` if
    that can't be done any more.

    ``anchor`` is a block of the chain that they were read of, above them, if one is known: it has
    to be the chain's still, since operators may go back below what was final.

    The cursor's lock is taken when the events are there, so that the follower needn't wait for
    them: no other process writes events of final blocks that haven't been read before.
    """
    with transaction.atomic():
        maintenance.check()
        fetch(_WITHOUT_WAITING, (), prepare=False)
        store_ready(group.network_id, [part.events for part in parts])
        _move(group, parts[-1].last + 1, parts, version, step, anchor)
    group.first = parts[-1].last + 1


def commit_recent(group: Group, part: Part, version: int, blocks: Sequence[Block]) -> None:
    """As ``commit``, for blocks that aren't final: if these, by height and hash, are still what
    the follower holds to be the chain."""
    with transaction.atomic():
        maintenance.check()
        fetch(_LOCK_CURSOR, {"network": group.network_id}, prepare=True)
        if canonical_blocks(group.network_id, blocks[0][0], blocks[-1][0]) != [*blocks]:
            raise Lost
        store_ready(group.network_id, [part.events])
        _move(group, part.last + 1, [part], version, group.step)
    group.first = part.last + 1


def finish(group: Group, version: int) -> None:
    """End rows that stand above the cursor: a reorganisation has taken the rest of their blocks
    away, and the follower reads what comes instead."""
    with transaction.atomic():
        maintenance.check()
        _move(group, group.first, (), version, group.step)


def canonical_blocks(network_id: int, first: int, last: int) -> list[Block]:
    """Heights and hashes of the headers that are stored, in order."""
    rows = fetch_rows(
        BlockRow,
        f"{_BLOCKS} AND number BETWEEN %(first)s AND %(last)s ORDER BY number",
        {"network": network_id, "first": first, "last": last},
        prepare=True,
    )
    return [(row.number, row.hash) for row in rows]


def canonical_blocks_at(network_id: int, heights: Collection[int]) -> list[Block]:
    """As ``canonical_blocks``, of single heights."""
    rows = fetch_rows(
        BlockRow,
        f"{_BLOCKS} AND number = ANY(%(heights)s::bigint[]) ORDER BY number",
        {"network": network_id, "heights": [*heights]},
        prepare=True,
    )
    return [(row.number, row.hash) for row in rows]


def anchor_of(network_id: int, final: int) -> Block | None:
    """The highest block up to ``final`` whose header is stored: a provider without it has another
    chain."""
    rows = fetch_rows(
        BlockRow,
        f"{_BLOCKS} AND number <= %(final)s ORDER BY number DESC LIMIT 1",
        {"network": network_id, "final": final},
        prepare=True,
    )
    return (rows[0].number, rows[0].hash) if rows else None


def note_trouble(group: Group, failure: NodeFailure) -> None:
    """Note why a group can't go on, and let it wait: longer each time, a minute at most."""
    fetch(
        "UPDATE chain_backfill SET trouble = %(trouble)s, failures = failures + 1, paused_until ="
        " statement_timestamp()"
        " + make_interval(secs => least(%(longest)s, power(2, least(failures, 10))))"
        " WHERE id = ANY(%(ids)s::bigint[]) AND done_at IS NULL",
        {"trouble": str(failure)[:500], "longest": _LONGEST_PAUSE, "ids": group.ids},
        prepare=True,
    )


def _move(
    group: Group,
    next_block: int,
    parts: Sequence[Part],
    version: int,
    step: int,
    anchor: Block | None = None,
) -> None:
    """Move the rows, and end those that are done. Under the cursor's lock from here on."""
    rows = fetch_rows(_CursorRow, _LOCK_CURSOR, {"network": group.network_id}, prepare=True)
    if not rows:
        raise Lost
    [(contracts, number, halted)] = rows
    if contracts != version or halted is not None or number is None:
        raise Lost
    if anchor and canonical_blocks(group.network_id, anchor[0], anchor[0]) != [anchor]:
        raise Lost
    if group.first < next_block > number + 1:
        raise Lost
    events = [
        sum(part.events.by_address.get(address, 0) for part in parts) for address in group.addresses
    ]
    params = {
        "next": next_block,
        "step": step,
        "ids": group.ids,
        "events": events,
        "first": group.first,
    }
    moved = fetch_rows(_Moved, _MOVE, params, prepare=True)
    if len(moved) != len(group.ids):
        raise Lost
    done = [row for row in moved if next_block > min(row.last_block, number)]
    for row in done:
        note_read(group.network_id, row.address, (row.first_block, row.last_block))
    if done:
        fetch(
            "UPDATE chain_backfill SET done_at = statement_timestamp()"
            " WHERE id = ANY(%(ids)s::bigint[])",
            {"ids": [row.id for row in done]},
            prepare=True,
        )
