"""Repair stored events that differ from the chain.

Subscribers are notified as usual if they received events of these blocks: those that were read as
head since the contract is listened to. A wrong event is sent as ``removed`` as it was, and as
``added`` as it is. Events that are read again because an ABI has changed are corrected without
notification: the chain is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db import transaction

from chain.core.blocks.differences import Identity, compare, identity_of
from chain.core.blocks.events import EventRow
from chain.indexing.history.progress import Lost
from chain.indexing.storage import block_rows, corrections, cursors
from chain.indexing.storage.corrections import StoredEvent
from chain.indexing.storage.events import store_events
from chain.models import Coverage
from objects.database import maintenance


class Truth(NamedTuple):
    """Some blocks as the chain has them: their hashes by height, the events of some contracts,
    and the stored events that are certainly not in it."""

    hashes: Mapping[int, str]
    rows: Sequence[EventRow]
    superfluous: Collection[Identity]


def stored_events(
    network_id: int, heights: Collection[int], addresses: Sequence[str] | None = None
) -> dict[Identity, StoredEvent]:
    """Return the canonical events of these blocks, of all contracts or of these. Events that were
    written by hand and have no place in a block are left out."""
    if not heights:
        return {}
    events = corrections.stored(network_id, heights, addresses)
    return {identity_of(event): event for event in events}


def last_block_within(network_id: int, first: int, last: int, most: int) -> int:
    """Return the last block up to which at most ``most`` events are stored; ``first`` at least."""
    height = corrections.height_after(network_id, first, last, most)
    return last if height is None else max(first, height - 1)


def repair(network_id: int, truth: Truth, version: int, final: int, *, notify_changes: bool) -> int:
    """Make the stored events of these blocks those of the chain; return how many changed.

    Raises ``Lost`` if contracts have changed since the truth was read with their ``version``, or if
    one of the blocks above the ``final`` ones isn't in the chain any more.
    """
    with maintenance.recording(), transaction.atomic():
        maintenance.check()
        cursor = cursors.lock(network_id)
        if cursor is None or cursor.contracts != version or cursor.halted is not None:
            raise Lost
        if not _holds(network_id, truth, final):
            raise Lost
        stored = stored_events(network_id, truth.hashes.keys())
        differences = compare(stored, truth.rows)
        superfluous = [
            identity for identity in differences.superfluous if identity in truth.superfluous
        ]
        notified_from = _notified_from(network_id)

        def was_notified(address: str, number: int) -> bool:
            return number > notified_from.get(address, number)

        def ids_to_notify(identities: Iterable[Identity]) -> list[str]:
            return [
                stored[identity].object_id
                for identity in identities
                if was_notified(stored[identity].address, identity.block_number)
            ]

        changed = ids_to_notify(map(identity_of, differences.different)) if notify_changes else []
        gone = ids_to_notify(superfluous)
        seq = cursor.outbox
        seq += corrections.send_removed(network_id, [*gone, *changed], seq)
        corrections.withdraw([stored[identity].object_id for identity in superfluous])
        corrections.correct(
            {stored[identity_of(row)].object_id: row for row in differences.different}
        )
        visible = [
            row for row in differences.missing if was_notified(row.address, row.block_number)
        ]
        unnoticed = [
            row for row in differences.missing if not was_notified(row.address, row.block_number)
        ]
        store_events(network_id, unnoticed, after_seq=None)
        seq += store_events(network_id, visible, after_seq=seq)
        seq += corrections.send_added(network_id, changed, seq)
        if seq > cursor.outbox:
            cursors.set_outbox(network_id, seq)
        return len(differences.missing) + len(superfluous) + len(differences.different)


def fill_block_timestamps(network_id: int, rows: Iterable[EventRow]) -> int:
    """Store the time of the block with events that lack it; return how many did. Subscribers
    aren't notified: the chain is the same."""
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


def _notified_from(network_id: int) -> dict[str, int]:
    """Return the height above which subscribers get a contract's events."""
    coverages = Coverage.objects.filter(network_id=network_id, followed_from__isnull=False)
    return {address: int(height or 0) for address, height in coverages.values_list(*_FOLLOWED)}


_FOLLOWED = ("address", "followed_from")
