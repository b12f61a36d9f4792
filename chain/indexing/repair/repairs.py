"""Putting right what is stored otherwise than the chain says.

Subscribers are notified of it as usual, if they got events of these blocks at all: of
those that the follower has read since the contract is listened to. An event that was wrong is
``removed`` as it was, and ``added`` as it is. What is read again because an ABI has changed is
corrected in silence: the chain is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from django.db import transaction

from chain.core.blocks.differences import Content, Difference, Identity, compare, identity_of
from chain.core.blocks.events import EventRow
from chain.indexing.history.progress import Lost
from chain.indexing.storage import block_rows
from chain.indexing.storage.events import NOW, moment_text, outbox_insert, store_events
from chain.models import Coverage
from chain.models.columns import Column, Columns
from chain.models.stored import EVENT
from objects.database import maintenance
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_value, fetch_values


class Truth(NamedTuple):
    """What the chain says of some blocks: their hashes by height, the events of some contracts in
    them, and which stored ones are certainly not."""

    hashes: Mapping[int, str]
    rows: Sequence[EventRow]
    superfluous: Collection[Identity]


class Stored(NamedTuple):
    object_id: str
    content: Content


class _CursorRow(NamedTuple):
    contracts: int
    outbox: int
    halted: str | None


_LOCK_CURSOR = f"""
SELECT {select_list(_CursorRow, "c")} FROM chain_cursor c
 WHERE network_id = %(network)s FOR UPDATE
"""


class _StoredRow(NamedTuple):
    object_id: str
    block_number: int
    log_index: int
    block_hash: str
    event_name: str | None
    address: Annotated[str, "COALESCE({row}.address, '')"]
    transaction_hash: Annotated[str, "COALESCE({row}.transaction_hash, '')"]
    transaction_index: Annotated[int, "COALESCE({row}.transaction_index, -1)"]
    ordinal: Annotated[int, "COALESCE({row}.ordinal, 0)"]
    args: str
    block_timestamp: Annotated[str | None, moment_text("{row}.block_timestamp")]


_STORED = f"""
SELECT {select_list(_StoredRow, "e")}
  FROM chain_contract_event e
 WHERE network_id = %(network)s AND canonical AND block_number BETWEEN %(first)s AND %(last)s
   AND log_index IS NOT NULL AND block_hash IS NOT NULL
"""
_AT = " AND block_number = ANY(%(heights)s::bigint[])"
_OF = " AND address = ANY(%(addresses)s::text[])"
_TELL_AS = (
    "WITH changed AS (SELECT * FROM chain_contract_event WHERE object_id = ANY(%(ids)s::text[])),"
    " told AS ({} RETURNING 1) SELECT count(*) FROM told"
)
_REMOVED = _TELL_AS.format(outbox_insert("removed", "DESC"))
_ADDED = _TELL_AS.format(outbox_insert("added", "ASC"))
_WITHDRAW = f"""
UPDATE chain_contract_event e
   SET canonical = false, updated_at = GREATEST(e.updated_at, {NOW})
 WHERE object_id = ANY(%s::text[])
"""
_CORRECTED = Columns((Column("object_id", "text"), *EVENT.updated))
_CORRECT = f"""
UPDATE chain_contract_event e
   SET {EVENT.updated.assignments("n", "e")}, updated_at = GREATEST(e.updated_at, {NOW})
  FROM {_CORRECTED.unnest("n")}
 WHERE e.object_id = n.object_id
"""
_DATE = f"""
UPDATE chain_contract_event e
   SET block_timestamp = n.block_timestamp, updated_at = GREATEST(e.updated_at, {NOW})
  FROM unnest(%s::bigint[], %s::text[], %s::timestamptz[])
       AS n (block_number, block_hash, block_timestamp)
 WHERE e.network_id = %s AND e.block_number = n.block_number AND e.block_hash = n.block_hash
   AND e.block_timestamp IS NULL
RETURNING 1
"""


def stored_events(
    network_id: int, heights: Collection[int], addresses: Sequence[str] | None = None
) -> dict[Identity, Stored]:
    """The events of these blocks that clients are shown, of all contracts or of these. Events that
    were written by hand and have no place in a block are left out."""
    if not heights:
        return {}
    sql = _STORED
    params: dict[str, Any] = {
        "network": str(network_id),
        "first": min(heights),
        "last": max(heights),
    }
    if not isinstance(heights, range):
        sql += _AT
        params["heights"] = [*heights]
    if addresses is not None:
        sql += _OF
        params["addresses"] = [*addresses]
    stored = {}
    for row in fetch_rows(_StoredRow, sql, params, prepare=True):
        content = Content(*(getattr(row, name) for name in Content._fields))
        identity = Identity(row.block_number, row.log_index, row.block_hash)
        stored[identity] = Stored(row.object_id, content)
    return stored


def last_of_some(network_id: int, first: int, last: int, most: int) -> int:
    """Up to which of these blocks there are so many events at ``most``; ``first`` at least."""
    height = fetch_value(
        int,
        "SELECT block_number FROM chain_contract_event"
        " WHERE network_id = %(network)s AND block_number BETWEEN %(first)s AND %(last)s"
        " ORDER BY block_number, log_index OFFSET %(most)s LIMIT 1",
        {"network": str(network_id), "first": first, "last": last, "most": most},
        prepare=True,
    )
    return last if height is None else max(first, height - 1)


def difference(stored: Mapping[Identity, Stored], read: Iterable[EventRow]) -> Difference:
    return compare({identity: event.content for identity, event in stored.items()}, read)


def mend(network_id: int, truth: Truth, version: int, final: int, *, tell_changes: bool) -> int:
    """Make what is stored of these blocks what the chain says; how many events that was about.

    ``Lost`` if contracts have changed since the truth was read with their ``version``, or one of
    the blocks, above the ``final`` ones, is not in the chain any more.
    """
    with maintenance.recording(), transaction.atomic():
        maintenance.check()
        [(contracts, outbox, halted)] = fetch_rows(
            _CursorRow, _LOCK_CURSOR, {"network": network_id}, prepare=True
        )
        if contracts != version or halted is not None or not _holds(network_id, truth, final):
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
                if is_told(stored[identity].content.address, identity.block_number)
            ]

        changed = told_ids(map(identity_of, differences.different)) if tell_changes else []
        gone = told_ids(superfluous)
        seq = outbox
        seq += _tell(_REMOVED, network_id, [*gone, *changed], seq)
        fetch(_WITHDRAW, ([stored[identity].object_id for identity in superfluous],), prepare=True)
        _correct({stored[identity_of(row)].object_id: row for row in differences.different})
        visible = [row for row in differences.missing if is_told(row.address, row.block_number)]
        untold = [row for row in differences.missing if not is_told(row.address, row.block_number)]
        store_events(network_id, untold, after_seq=None)
        seq += store_events(network_id, visible, after_seq=seq)
        seq += _tell(_ADDED, network_id, changed, seq)
        if seq > outbox:
            fetch(
                "UPDATE chain_cursor SET outbox = %s WHERE network_id = %s RETURNING"
                " pg_notify('chain_outbox', network_id || ' ' || outbox)",
                (seq, network_id),
                prepare=True,
            )
        return len(differences.missing) + len(superfluous) + len(differences.different)


def date(network_id: int, rows: Iterable[EventRow]) -> int:
    """Give events of these blocks that lack it the time of their block; how many that were.
    Subscribers aren't told: the chain is the same."""
    blocks = {(row.block_number, row.block_hash): row.block_timestamp for row in rows}
    times = [(*block, time) for block, time in blocks.items() if time is not None]
    if not times:
        return 0
    numbers, hashes, texts = map(list, zip(*times, strict=True))
    with maintenance.recording(), transaction.atomic():
        maintenance.check()
        return len(fetch(_DATE, (numbers, hashes, texts, str(network_id)), prepare=True))


def _holds(network_id: int, truth: Truth, final: int) -> bool:
    recent = {height: hash_ for height, hash_ in truth.hashes.items() if height > final}
    canonical = dict(block_rows.at_heights(network_id, recent))
    return all(canonical.get(height) == hash_ for height, hash_ in recent.items())


def _told_from(network_id: int) -> dict[str, int]:
    """Return the height above which subscribers get a contract's events."""
    coverages = Coverage.objects.filter(network_id=network_id, followed_from__isnull=False)
    return {address: int(height or 0) for address, height in coverages.values_list(*_FOLLOWED)}


_FOLLOWED = ("address", "followed_from")


def _tell(sql: str, network_id: int, ids: Sequence[str], after_seq: int) -> int:
    if not ids:
        return 0
    params = {"ids": [*ids], "network": network_id, "after": after_seq}
    [count] = fetch_values(int, sql, params, prepare=True)
    return count


def _correct(rows: Mapping[str, EventRow]) -> None:
    """Let the events with these ids be as their rows say."""
    if rows:
        params = {"object_id": [*rows], **EVENT.updated.parameters([*rows.values()])}
        fetch(_CORRECT, params, prepare=True)
