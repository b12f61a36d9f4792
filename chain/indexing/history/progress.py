"""Committing what a backfill has read, together with how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction

from chain.core.failures import NodeFailure
from chain.indexing.coverage import note_read
from chain.indexing.storage import backfills, block_rows, cursors
from chain.indexing.storage.block_rows import Block
from chain.indexing.storage.events import Ready, store_ready
from chain.models import Backfill
from objects.database import maintenance


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
        self.is_unavailable: bool = rows[0].unavailable
        self.begin: int = min(row.first_block for row in rows)
        self.step: int = max(row.step for row in rows)
        self.is_empty = not any(row.events for row in rows)
        """Whether no event of theirs has been stored yet."""
        self.lasts = [row.last_block for row in rows]
        last = min(self.lasts)
        self.last: int = last if stop is None else min(last, stop - 1)


class Part(NamedTuple):
    """Blocks that have been read: up to ``last``, from where the part before ended."""

    last: int
    events: Ready


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
        backfills.commit_without_waiting()
        store_ready(group.network_id, [part.events for part in parts])
        _move(group, parts[-1].last + 1, parts, version, step, anchor)
    group.first = parts[-1].last + 1


def commit_recent(group: Group, part: Part, version: int, blocks: Sequence[Block]) -> None:
    """As ``commit``, for blocks that aren't final: if these, by height and hash, are still what
    the follower holds to be the chain."""
    with transaction.atomic():
        maintenance.check()
        cursors.lock(group.network_id)
        if block_rows.between(group.network_id, blocks[0][0], blocks[-1][0]) != [*blocks]:
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


def note_trouble(group: Group, failure: NodeFailure) -> None:
    """Note why a group can't go on, and let it wait: longer each time, a minute at most."""
    backfills.note_trouble(group.ids, str(failure)[:500])


def _move(
    group: Group,
    next_block: int,
    parts: Sequence[Part],
    version: int,
    step: int,
    anchor: Block | None = None,
) -> None:
    """Move the rows, and end those that are done. Under the cursor's lock from here on."""
    cursor = cursors.lock(group.network_id)
    if cursor is None or cursor.contracts != version or cursor.halted is not None:
        raise Lost
    number = cursor.number
    if number is None:
        raise Lost
    if anchor and block_rows.between(group.network_id, anchor[0], anchor[0]) != [anchor]:
        raise Lost
    if group.first < next_block > number + 1:
        raise Lost
    events = [
        sum(part.events.by_address.get(address, 0) for part in parts) for address in group.addresses
    ]
    moved = backfills.move(group.ids, events, first=group.first, next_block=next_block, step=step)
    if len(moved) != len(group.ids):
        raise Lost
    done = [row for row in moved if next_block > min(row.last_block, number)]
    for row in done:
        note_read(group.network_id, row.address, (row.first_block, row.last_block))
    backfills.finish([row.id for row in done])
