"""Putting right what is stored otherwise than the chain says.

Subscribers are notified of it as usual, if they got events of these blocks at all: of
those that the follower has read since the contract is listened to. An event that was wrong is
``removed`` as it was, and ``added`` as it is. What is read again because an ABI has changed is
corrected in silence: the chain is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db import transaction

from chain.core.blocks.differences import Difference, Identity, compare, identity_of
from chain.core.blocks.events import EventRow
from chain.indexing.history.progress import Lost
from chain.indexing.storage import block_rows, corrections, cursors
from chain.indexing.storage.corrections import StoredEvent
from chain.indexing.storage.events import store_events
from chain.models import Coverage
from objects.database import maintenance


class Truth(NamedTuple):
    """What the chain says of some blocks: their hashes by height, the events of some contracts in
    them, and which stored ones are certainly not."""

    hashes: Mapping[int, str]
    rows: Sequence[EventRow]
    superfluous: Collection[Identity]


def stored_events(
    network_id: int, heights: Collection[int], addresses: Sequence[str] | None = None
) -> dict[Identity, StoredEvent]:
    """The events of these blocks that clients are shown, of all contracts or of these. Events that
    were written by hand and have no place in a block are left out."""
    if not heights:
        return {}
    events = corrections.stored(network_id, heights, addresses)
    return {identity_of(event): event for event in events}


def last_of_some(network_id: int, first: int, last: int, most: int) -> int:
    """Up to which of these blocks there are so many events at ``most``; ``first`` at least."""
    height = corrections.height_after(network_id, first, last, most)
    return last if height is None else max(first, height - 1)


def difference(stored: Mapping[Identity, StoredEvent], read: Iterable[EventRow]) -> Difference:
    return compare(stored, read)


def mend(network_id: int, truth: Truth, version: int, final: int, *, tell_changes: bool) -> int:
    """Make what is stored of these blocks what the chain says; how many events that was about.

    ``Lost`` if contracts have changed since the truth was read with their ``version``, or one of
    the blocks, above the ``final`` ones, is not in the chain any more.
    """
    with maintenance.recording(), transaction.atomic():
        maintenance.check()
        cursor = cursors.lock(network_id)
        if cursor is None or cursor.contracts != version or cursor.halted is not None:
            raise Lost
        if not _holds(network_id, truth, final):
            raise Lost
        stored = stored_events(network_id, truth.hashes.keys())
        differences = difference(stored, truth.rows)
        superfluous = [
            identity for identity in differences.superfluous if identity in truth.superfluous
        ]
        told_from = _told_from(network_id)

        def is_told(address: str, number: int) -> bool:
            return number > told_from.get(address, number)

        def told_ids(identities: Iterable[Identity]) -> list[str]:
            return [
                stored[identity].object_id
                for identity in identities
                if is_told(stored[identity].address, identity.block_number)
            ]

        changed = told_ids(map(identity_of, differences.different)) if tell_changes else []
        gone = told_ids(superfluous)
        seq = cursor.outbox
        seq += corrections.send_removed(network_id, [*gone, *changed], seq)
        corrections.withdraw([stored[identity].object_id for identity in superfluous])
        corrections.correct(
            {stored[identity_of(row)].object_id: row for row in differences.different}
        )
        visible = [row for row in differences.missing if is_told(row.address, row.block_number)]
        untold = [row for row in differences.missing if not is_told(row.address, row.block_number)]
        store_events(network_id, untold, after_seq=None)
        seq += store_events(network_id, visible, after_seq=seq)
        seq += corrections.send_added(network_id, changed, seq)
        if seq > cursor.outbox:
            cursors.set_outbox(network_id, seq)
        return len(differences.missing) + len(superfluous) + len(differences.different)


def date(network_id: int, rows: Iterable[EventRow]) -> int:
    """Give events of these blocks that lack it the time of their block; how many that were.
    Subscribers aren't told: the chain is the same."""
    blocks = {(row.block_number, row.block_hash): row.block_timestamp for row in rows}
    times = {block: time for block, time in blocks.items() if time is not None}
    if not times:
        return 0
    with maintenance.recording(), transaction.atomic():
        maintenance.check()
        return corrections.date(network_id, times)


def _holds(network_id: int, truth: Truth, final: int) -> bool:
    recent = {height: hash_ for height, hash_ in truth.hashes.items() if height > final}
    canonical = dict(block_rows.at_heights(network_id, recent))
    return all(canonical.get(height) == hash_ for height, hash_ in recent.items())


def _told_from(network_id: int) -> dict[str, int]:
    """Return the height above which subscribers get a contract's events."""
    coverages = Coverage.objects.filter(network_id=network_id, followed_from__isnull=False)
    return {address: int(height or 0) for address, height in coverages.values_list(*_FOLLOWED)}


_FOLLOWED = ("address", "followed_from")
