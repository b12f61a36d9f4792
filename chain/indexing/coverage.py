"""What has been read for each contract, and what is missing.

The blocks above the cursor are the follower's: it reads them for all contracts that are listened
to. What lies below is missing for a contract unless it was read: before it was
registered, before its ``startBlock`` was lowered, while it wasn't listened to. ``plan`` compares
the two and has the rest read by backfills. It may be called at any time, as often as one likes.

All of this is changed under the lock of the network's cursor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.db import transaction
from django.db.models.functions import Now

from chain.core.blocks.spans import Span, Spans, union, up_to, without
from chain.core.names import checksummed
from chain.dispatch import start_backfills
from chain.models import Backfill, Coverage, Cursor, SmartContract


class _Wish(NamedTuple):
    """From which block on a contract is wanted; None is from where it was made."""

    start: int | None


def plan(network_id: int) -> None:
    """Plan what is missing, and note for which ``contracts`` of the cursor that was done.

    Without effect until the network has answered once.
    """
    with transaction.atomic():
        cursor = Cursor.objects.select_for_update().filter(pk=network_id).first()
        if cursor is None or cursor.number is None:
            return
        wishes = _wishes(network_id)
        coverages = {row.address: row for row in Coverage.objects.filter(network_id=network_id)}
        rows = _open_backfills(network_id)
        for address in sorted(wishes.keys() | coverages.keys() | rows.keys()):
            coverage = coverages.get(address) or Coverage(network_id=network_id, address=address)
            own = rows.get(address, [])
            if address in wishes:
                _go_on(cursor, coverage, wishes[address], own)
            elif coverage.followed_from is not None or own:
                _stop(cursor, coverage, own)
        Cursor.objects.filter(pk=network_id).update(planned=cursor.contracts)


def ask(network_id: int, addresses: Iterable[str], first: int, last: int) -> list[Backfill]:
    """Have blocks of contracts read again that may have been read before; the backfills of it.

    Nothing that is above the cursor, which the follower reads anyway.
    """
    with transaction.atomic():
        cursor = Cursor.objects.select_for_update().filter(pk=network_id).first()
        if cursor is None or cursor.number is None:
            return []
        last = min(last, cursor.number)
        return [
            Backfill.objects.create(
                network_id=network_id,
                address=address,
                first_block=first,
                next_block=first,
                last_block=last,
                asked=True,
            )
            for address in addresses
            if first <= last
        ]


def note_read(network_id: int, address: str, span: Span) -> None:
    """Note that these blocks have been read for a contract."""
    row = Coverage.objects.filter(network_id=network_id, address=address).first()
    coverage = row or Coverage(network_id=network_id, address=address)
    coverage.spans = union(spans_of(coverage), [span])
    coverage.save()


def spans_of(coverage: Coverage) -> Spans:
    return [(first, last) for first, last in coverage.spans]


def covered(network_id: int) -> dict[str, Spans]:
    """The blocks up to the cursor that have been read, for each contract that is listened to."""
    cursor = Cursor.objects.filter(pk=network_id).first()
    if cursor is None or cursor.number is None:
        return {}
    rows = _open_backfills(network_id)
    wishes = _wishes(network_id)
    return {
        coverage.address: _done(coverage, rows.get(coverage.address, []), cursor.number)
        for coverage in Coverage.objects.filter(network_id=network_id)
        if coverage.address in wishes
    }


def _wishes(network_id: int) -> dict[str, _Wish]:
    contracts = SmartContract.objects.filter(network_id=network_id, listening=True)
    return {
        checksummed(address.lower()): _Wish(start)
        for address, start in contracts.values_list("address", "start_block")
        if address
    }


def _open_backfills(network_id: int) -> dict[str, list[Backfill]]:
    backfills: dict[str, list[Backfill]] = {}
    for row in Backfill.objects.filter(network_id=network_id, done_at=None).order_by("pk"):
        backfills.setdefault(row.address, []).append(row)
    return backfills


def _go_on(cursor: Cursor, coverage: Coverage, wish: _Wish, rows: list[Backfill]) -> None:
    """Have everything read that is wanted of a contract."""
    number, began_at = int(cursor.number or 0), int(cursor.began_at or 0)
    if coverage.followed_from is None:
        coverage.followed_from = number
        coverage.save()
    elif coverage.followed_from < began_at:
        # The cursor was recreated since: up to where the blocks between were indexed isn't known.
        coverage.followed_from = began_at
        coverage.save()
    missing = without([(wish.start or 0, number)], _done(coverage, rows, number))
    planned = [row for row in rows if not row.asked]
    if union((row.next_block, row.last_block) for row in planned) == missing:
        return
    _close(coverage, planned)
    start_backfills(coverage.network_id)
    Backfill.objects.bulk_create(
        Backfill(
            network_id=coverage.network_id,
            address=coverage.address,
            first_block=first,
            next_block=first,
            last_block=last,
            seeking=wish.start is None and first == 0,
            step=max((row.step for row in planned), default=0),
        )
        for first, last in missing
    )


def _stop(cursor: Cursor, coverage: Coverage, rows: list[Backfill]) -> None:
    """Nothing of a contract is wanted any more. What has been read is remembered, as far as no
    reorganisation can change it unnoticed."""
    number = int(cursor.number or 0)
    if cursor.finalized is not None:
        final = min(number, cursor.finalized)
    else:
        final = min(number, int(cursor.began_at or 0))
    read = _done(coverage, rows, number)
    coverage.followed_from = None
    _close(coverage, rows)
    coverage.spans = up_to(read, final)
    coverage.save()


def _done(coverage: Coverage, rows: Iterable[Backfill], number: int) -> Spans:
    """What has been read up to this height."""
    parts = [spans_of(coverage), _progress(rows)]
    if coverage.followed_from is not None:
        parts.append([(coverage.followed_from + 1, number)])
    return union(*parts)


def _progress(rows: Iterable[Backfill]) -> Spans:
    return [(row.first_block, row.next_block - 1) for row in rows]


def _close(coverage: Coverage, rows: list[Backfill]) -> None:
    """End backfills where they are."""
    if rows:
        Backfill.objects.filter(pk__in=[row.pk for row in rows]).update(done_at=Now())
        coverage.spans = union(spans_of(coverage), _progress(rows))
        coverage.save()
