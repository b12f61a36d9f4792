"""What the reader writes: the first block, blocks that follow, blocks that are gone.

Each runs in one transaction that locks the network's cursor. If the cursor has moved since it was
read, it raises ``Elsewhere`` and writes nothing. Consumers of the outbox are notified on
``CHANNEL``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from django.db.models.functions import Least

from backend.logs.setup import get_logger
from chain import monitor
from chain.core.blocks.events import EventRow
from chain.core.blocks.final_heights import Heights
from chain.core.node import Header
from chain.indexing import verification
from chain.indexing.head import cursor
from chain.indexing.head.fetches import Stretch
from chain.indexing.history import backfill
from chain.indexing.storage import block_rows, cursors, events, reorganisation_rows
from chain.indexing.storage.cursors import Position
from chain.models import Backfill, Coverage, Cursor, ProvedBlock, Recheck
from chain.models.indexing import RESET_CURSOR
from objects.database import maintenance
from objects.database.orm import orm_queries

_NOTED_EVERY: Final = 3.0
_LONGEST: Final = 500

log = get_logger("chain")


@contextmanager
def _writing() -> Iterator[None]:
    """A transaction that is refused only while the chain is paused (``UnderMaintenance``)."""
    with maintenance.recording(), maintenance.writing():
        yield


def begin(at: Position, header: Header, head: int, final: Heights) -> None:
    """Put the cursor of a network to its first block. Everything below is history."""
    with _writing():
        cursor.lock(at)
        block_rows.put(at.network_id, [header])
        verification.learn(at.network_id, [header])
        cursors.begin(
            at.network_id,
            header.height,
            header.hash,
            head=head,
            safe=_bounded(final.safe, header.height),
            finalized=_bounded(final.finalized, header.height),
        )
        backfill.plan(at.network_id)
    log.info("following a network", network=at.network_id, block=header.height)


def plan(at: Position) -> None:
    """Have planned what is to be read of contracts that are new."""
    with _writing():
        cursor.lock(at)
        backfill.plan(at.network_id)


def advance(at: Position, stretch: Stretch, rows: Sequence[EventRow]) -> Position:
    """Store what was read, and move the cursor to the last of the blocks: the position then.

    Safe and final heights are capped at the last block that was read, so that a wrong node can't
    make blocks final that it doesn't have."""
    last = stretch.last
    with _writing():
        outbox = cursor.lock(at)
        block_rows.put(at.network_id, stretch.headers)
        verification.learn(at.network_id, stretch.headers)
        stored = events.store_events(at.network_id, rows, after_seq=outbox)
        cursors.advance(
            at.network_id,
            last.height,
            last.hash,
            stored=stored,
            head=at.head,
            safe=_bounded(at.safe, last.height),
            finalized=_bounded(at.finalized, last.height),
        )
        if stretch.seen is not None:
            monitor.record(stretch.seen)
        _notify(at.network_id, outbox, stored)
    return at._replace(number=last.height, hash=last.hash, trouble=None, age=0.0)


def unwind(at: Position, number: int, hash_: str) -> Position:
    """Take the blocks above this one out of the chain, with their events, and put the cursor to it:
    the position then.

    Rows are marked, not deleted: the blocks may come back. In a transaction of its own, before
    anything is read of the other blocks, so that it holds even if that fails.
    """
    with _writing():
        outbox = cursor.lock(at)
        removed, moved = _take_out(at, outbox, number, hash_)
        _notify(at.network_id, outbox, removed)
    log.warning(
        "reorganisation",
        network=at.network_id,
        fork=number,
        depth=at.height - number,
        removed_events=removed,
        transactions=moved,
    )
    safe = None if at.safe is None else min(at.safe, number)
    return at._replace(number=number, hash=hash_, safe=safe)


def rewind(at: Position, header: Header) -> None:
    """As ``unwind``, also below what is final; a network that is halted isn't afterwards."""
    with _writing():
        outbox = cursor.lock(at, halted=True)
        removed, _ = _take_out(at, outbox, header.height, header.hash)
        ProvedBlock.objects.filter(network_id=at.network_id, number__gt=header.height).delete()
        block_rows.put(at.network_id, [header])
        with orm_queries():
            Cursor.objects.filter(network_id=at.network_id).update(
                halted=None,
                trouble=None,
                next_poll_at=None,
                began_at=Least("began_at", "number"),
                finalized=Least("finalized", "number"),
            )
        _notify(at.network_id, outbox, removed)
    log.warning("rewound", network=at.network_id, block=header.height, removed_events=removed)


def index_from_scratch(at: Position) -> None:
    """Take everything out of the chain that was read, for a network that has nothing in common with
    it: the next look is the first one again."""
    with _writing():
        outbox = cursor.lock(at, halted=True)
        removed, _ = _take_out(at, outbox, -1, "")
        Coverage.objects.filter(network_id=at.network_id).delete()
        Backfill.objects.filter(network_id=at.network_id, done_at=None).delete()
        Recheck.objects.filter(network_id=at.network_id).delete()
        ProvedBlock.objects.filter(network_id=at.network_id).delete()
        with orm_queries():
            Cursor.objects.filter(network_id=at.network_id).update(**RESET_CURSOR)
        _notify(at.network_id, outbox, removed)
    log.warning("a network is indexed from scratch", network=at.network_id, removed_events=removed)


def _take_out(at: Position, outbox: int, number: int, hash_: str) -> tuple[int, int]:
    """Mark what is above this block; how many events and followed transactions that is about."""
    removed = events.remove_events(at.network_id, number, after_seq=outbox)
    block_rows.remove_above(at.network_id, number)
    moved = monitor.on_reorganisation(at.network_id, number)
    reorganisation_rows.insert(
        at.network_id,
        (number, hash_),
        (at.height, at.hash),
        removed_events=removed,
        transactions=moved,
    )
    cursors.move_back(at.network_id, number, hash_, removed=removed)
    return removed, moved


def note_look(before: Position, now: Position) -> None:
    """Note what a successful poll has found that found no blocks to be read: at once if it's new,
    else every few seconds."""
    safe, finalized = _bounded(now.safe, now.height), _bounded(now.finalized, now.height)
    stored = (before.head, before.safe, before.finalized, before.trouble)
    if stored == (now.head, safe, finalized, None) and before.age < _NOTED_EVERY:
        return
    cursors.note_poll(now, safe=safe, finalized=finalized)


def note_behind(at: Position, trouble: str) -> None:
    """Note that the node's newest block is below the one that was read. The head stays unknown, so
    this isn't a successful poll. Not logged: replicas behind one address differ all the time."""
    cursors.note_trouble_at(at, trouble)


def note_trouble(network_id: int, trouble: str) -> None:
    """Note why nothing could be read."""
    text = trouble[:_LONGEST]
    if cursors.note_trouble(network_id, text):
        log.warning("a network can't be read", network=network_id, reason=text)


def _bounded(height: int | None, number: int) -> int | None:
    """What is noted of a height up to which blocks are safe or final, when ``number`` was read."""
    return None if height is None else min(height, number)


def _notify(network_id: int, outbox: int, more: int) -> None:
    if more:
        cursors.notify(network_id, outbox + more)
