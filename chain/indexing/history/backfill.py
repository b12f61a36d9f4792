"""Reading what lies behind the cursor, beside the follower.

Each row of ``Backfill`` is a range of blocks of one contract; rows that stand at the same block
are read together. Final blocks are read by ranges, some of them ahead of the one that is being
stored, and set aside if no provider has them (``unavailable``); the few above by the hashes of the
headers that the follower has stored, which still have to be the chain's when their events are
committed.

A row belongs to one process at a time, by an advisory lock that ends with the process. Correctness
doesn't depend on it: events are committed together with ``next_block``, and only from where the
row stood before. Events of the past are not told to subscribers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final

from django.db.models import Q
from django.db.models.functions import Now

from backend.kernel.connections.advisory_locks import chain_backfill
from backend.kernel.errors import Timeout, TransactionConflict, UnderMaintenance
from backend.logs.setup import get_logger
from chain.core.failures import NodeFailure
from chain.indexing import contracts
from chain.indexing.contracts import Catalogue
from chain.indexing.coverage import plan
from chain.indexing.history.creation_block import seek
from chain.indexing.history.progress import Group, Lost, finish, note_trouble
from chain.indexing.history.ranges import read_history
from chain.indexing.history.recent import read_recent
from chain.indexing.history.unavailable import look_again, set_aside
from chain.models import Backfill, Cursor
from objects.database import locks, maintenance

__all__ = ["advance", "plan"]

SLICE: Final = 15.0  # seconds
_LARGEST_GROUP: Final = 200  # contracts that are asked for at once

_Place = tuple[int, bool, bool]

log = get_logger("chain")


def advance(network_id: int, seconds: float = SLICE) -> bool:
    """Read some of it, for about this long. Whether there was something to do.

    What goes wrong with a node is noted with the rows, which then wait for a while.
    """
    end = monotonic() + seconds
    did_something = False
    try:
        with maintenance.recording():
            while monotonic() < end:
                maintenance.check()
                cursor = Cursor.objects.filter(pk=network_id).first()
                if cursor is None or cursor.number is None or cursor.halted is not None:
                    break
                if cursor.planned != cursor.contracts:
                    plan(network_id)
                with _claimed(network_id) as group:
                    if group is None:
                        break
                    did_something = True
                    if not _work(group, cursor, end):
                        break
    except UnderMaintenance:
        pass
    return did_something


def _work(group: Group, cursor: Cursor, end: float) -> bool:
    """Read on for a group of rows; whether to look for the next one at once."""
    number = cursor.number or 0
    chosen = contracts.catalogue(group.network_id).only(group.addresses)
    if chosen.version != cursor.contracts or not chosen.wanted.addresses:
        # Changed this very moment.
        return False
    certain_height = cursor.finalized if cursor.finalized is not None else cursor.began_at
    final = min(number, certain_height or 0)
    try:
        if group.is_unavailable:
            look_again(group, final)
        elif group.seeking:
            seek(group)
        elif group.first > number:
            finish(group, chosen.version)
        elif group.first <= final:
            _read_final(group, chosen, final, end)
        else:
            return read_recent(group, chosen, number)
    except (Lost, Timeout, TransactionConflict) as lost:
        log.info("a backfill begins again", network=group.network_id, reason=repr(lost))
        return False
    except NodeFailure as failure:
        note_trouble(group, failure)
        log.warning("a backfill waits", network=group.network_id, trouble=str(failure))
        return True
    return True


def _read_final(group: Group, chosen: Catalogue, final: int, end: float) -> None:
    """Read final blocks; set aside those that no provider has. Raises ``NodeFailure``."""
    try:
        read_history(group, chosen, final, end)
    except NodeFailure:
        if not set_aside(group, final):
            raise


@contextmanager
def _claimed(network_id: int) -> Iterator[Group | None]:
    """Return rows that no other process works on, all at the same block, or None."""
    group = None
    locked: list[int] = []
    try:
        for rows, stop in _groups(network_id):
            locked = [row.pk for row in rows if locks.try_lock(chain_backfill(row.pk))]
            # As they are now, since another process may have moved them until a moment ago.
            mine = [
                row
                for row in Backfill.objects.filter(pk__in=locked, done_at=None).order_by("pk")
                if _place(row) == _place(rows[0])
            ]
            if mine:
                group = Group(network_id, mine, stop)
                break
            _unlock(locked)
            locked = []
        yield group
    finally:
        _unlock(locked)


def _groups(network_id: int) -> list[tuple[list[Backfill], int | None]]:
    """The rows that may be worked on, grouped by where they stand, in the order in which they are
    to be tried; each with the block at which the next group stands.

    Every other time the group that is farthest behind comes first, which goes on with the next
    one when it has reached it: that takes the fewest requests. The other times it is the group that
    has least to do, so that a short one needn't wait for a long one.
    """
    due = Q(paused_until=None) | Q(paused_until__lte=Now())
    backfills = Backfill.objects.filter(due, network_id=network_id, done_at=None)
    by_place: dict[_Place, list[Backfill]] = {}
    for row in backfills.order_by("next_block", "pk"):
        by_place.setdefault(_place(row), []).append(row)
    starts = sorted({start for start, _, _ in by_place})
    groups = []
    for (start, _, _), rows in by_place.items():
        # How far a row to be found the beginning of goes is its own matter.
        behind = () if rows[0].seeking else starts
        stop = next((other for other in behind if other > start), None)
        groups.append((rows[:_LARGEST_GROUP], stop))
    if random.random() < 0.5:
        groups.sort(key=lambda group: min(row.last_block - row.next_block for row in group[0]))
    groups.sort(key=lambda group: not group[0][0].seeking)  # quick, and saves much
    return groups


def _place(row: Backfill) -> _Place:
    """What rows have in common that are worked on together."""
    return row.next_block, row.seeking, row.unavailable


def _unlock(keys: Sequence[int]) -> None:
    for key in keys:
        locks.unlock(chain_backfill(key))
