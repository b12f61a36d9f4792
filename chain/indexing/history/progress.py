"""Committing what a backfill has read, together with how far it has come."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from django.db import transaction

from chain.core.failures import NodeFailure
from chain.indexing.coverage import note_read
from chain.indexing.storage.events import Ready, store_ready
from chain.models import Backfill
from objects.database import maintenance
from objects.database.statements import fetch

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


_LOCK_CURSOR = "SELECT contracts, number, halted FROM chain_cursor WHERE network_id = %s FOR UPDATE"
# Should PostgreSQL crash now, it loses the last moments, events and place together, and they are
# read again: nothing is worth waiting for the disk.
_WITHOUT_WAITING = "SET LOCAL synchronous_commit = off"
_MOVE = """
UPDATE chain_backfill b
   SET next_block = %s, events = b.events + n.events, step = %s,
       trouble = NULL, failures = 0, paused_until = NULL
  FROM unnest(%s::bigint[], %s::bigint[]) AS n (id, events)
 WHERE b.id = n.id AND b.next_block = %s AND b.done_at IS NULL AND NOT b.seeking
RETURNING b.id, b.address, b.first_block, b.last_block
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
        fetch(_LOCK_CURSOR, (group.network_id,), prepare=True)
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
    rows = fetch(
        "SELECT number, hash FROM chain_block WHERE network_id = %s AND canonical"
        " AND number BETWEEN %s AND %s ORDER BY number",
        (network_id, first, last),
        prepare=True,
    )
    return [(int(number), hash_) for number, hash_ in rows]


def canonical_blocks_at(network_id: int, heights: Collection[int]) -> list[Block]:
    """As ``canonical_blocks``, of single heights."""
    rows = fetch(
        "SELECT number, hash FROM chain_block WHERE network_id = %s AND canonical"
        " AND number = ANY(%s::bigint[]) ORDER BY number",
        (network_id, [*heights]),
        prepare=True,
    )
    return [(int(number), hash_) for number, hash_ in rows]


def anchor_of(network_id: int, final: int) -> Block | None:
    """The highest block up to ``final`` whose header is stored: a provider without it has another
    chain."""
    rows = fetch(
        "SELECT number, hash FROM chain_block WHERE network_id = %s AND canonical"
        " AND number <= %s ORDER BY number DESC LIMIT 1",
        (network_id, final),
        prepare=True,
    )
    return (int(rows[0][0]), rows[0][1]) if rows else None


def note_trouble(group: Group, failure: NodeFailure) -> None:
    """Note why a group can't go on, and let it wait: longer each time, a minute at most."""
    fetch(
        "UPDATE chain_backfill SET trouble = %s, failures = failures + 1, paused_until ="
        " statement_timestamp() + make_interval(secs => least(%s, power(2, least(failures, 10))))"
        " WHERE id = ANY(%s::bigint[]) AND done_at IS NULL",
        (str(failure)[:500], _LONGEST_PAUSE, group.ids),
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
    [(contracts, number, halted)] = fetch(_LOCK_CURSOR, (group.network_id,), prepare=True) or [
        ("-1", None, "gone")
    ]
    if int(contracts) != version or halted is not None or number is None:
        raise Lost
    if anchor and canonical_blocks(group.network_id, anchor[0], anchor[0]) != [anchor]:
        raise Lost
    if group.first < next_block > int(number) + 1:
        raise Lost
    events = [
        sum(part.events.by_address.get(address, 0) for part in parts) for address in group.addresses
    ]
    moved = fetch(_MOVE, (next_block, step, group.ids, events, group.first), prepare=True)
    if len(moved) != len(group.ids):
        raise Lost
    done = [row_moved for row_moved in moved if next_block > min(int(row_moved[3]), int(number))]
    for _, address, first, last in done:
        note_read(group.network_id, address, (int(first), int(last)))
    if done:
        fetch(
            "UPDATE chain_backfill SET done_at = statement_timestamp()"
            " WHERE id = ANY(%s::bigint[])",
            ([row_moved[0] for row_moved in done],),
            prepare=True,
        )
