"""The statements with which audits read and correct stored events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from chain.core.blocks.events import EventRow
from chain.core.columns import Column, Columns
from chain.indexing.storage.events import outbox_insert
from chain.models.stored import EVENT
from objects.database.statements import fetch, fetch_rows, fetch_value, fetch_values
from objects.sql.rows import touched


class StoredEvent(EventRow, frozen=True, gc=False):
    """An event with the id of its object."""

    object_id: str = ""


_STORED: Final = f"""
SELECT {EVENT.written.select("e")}, e.object_id
  FROM chain_contract_event e
 WHERE network_id = %(network)s AND canonical AND block_number BETWEEN %(first)s AND %(last)s
   AND log_index IS NOT NULL AND block_hash IS NOT NULL
"""
_AT: Final = " AND block_number = ANY(%(heights)s::bigint[])"
_OF: Final = " AND address = ANY(%(addresses)s::text[])"
_TELL_AS: Final = (
    "WITH changed AS (SELECT * FROM chain_contract_event WHERE object_id = ANY(%(ids)s::text[])),"
    " told AS ({} RETURNING 1) SELECT count(*) FROM told"
)
_REMOVED: Final = _TELL_AS.format(outbox_insert("removed", "DESC"))
_ADDED: Final = _TELL_AS.format(outbox_insert("added", "ASC"))
_WITHDRAW: Final = f"""
UPDATE chain_contract_event e
   SET canonical = false, updated_at = {touched("e")}
 WHERE object_id = ANY(%(ids)s::text[])
"""
_CORRECTED: Final = Columns((Column("object_id", "text"), *EVENT.updated))
_CORRECT: Final = f"""
UPDATE chain_contract_event e
   SET {EVENT.updated.assignments("n", "e")}, updated_at = {touched("e")}
  FROM {_CORRECTED.unnest("n")}
 WHERE e.object_id = n.object_id
"""
_DATE: Final = f"""
UPDATE chain_contract_event e
   SET block_timestamp = n.block_timestamp, updated_at = {touched("e")}
  FROM unnest(%(numbers)s::bigint[], %(hashes)s::text[], %(times)s::timestamptz[])
       AS n (block_number, block_hash, block_timestamp)
 WHERE e.network_id = %(network)s AND e.block_number = n.block_number
   AND e.block_hash = n.block_hash AND e.block_timestamp IS NULL
RETURNING true
"""


def stored(
    network_id: int, heights: Collection[int], addresses: Sequence[str] | None
) -> list[StoredEvent]:
    """Return the events of some blocks, one at least, of all contracts or of these."""
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
    return fetch_rows(StoredEvent, sql, params, prepare=True)


def height_after(network_id: int, first: int, last: int, most: int) -> int | None:
    """Return the height of the event in these blocks that follows ``most`` others, or None."""
    return fetch_value(
        int,
        "SELECT block_number FROM chain_contract_event"
        " WHERE network_id = %(network)s AND block_number BETWEEN %(first)s AND %(last)s"
        " ORDER BY block_number, log_index OFFSET %(most)s LIMIT 1",
        {"network": str(network_id), "first": first, "last": last, "most": most},
        prepare=True,
    )


def send_removed(network_id: int, ids: Sequence[str], after_seq: int) -> int:
    """Add events to the outbox as removed, before they change; return how many."""
    return _send(_REMOVED, network_id, ids, after_seq)


def send_added(network_id: int, ids: Sequence[str], after_seq: int) -> int:
    """Add events to the outbox as added, after they have changed; return how many."""
    return _send(_ADDED, network_id, ids, after_seq)


def _send(sql: str, network_id: int, ids: Sequence[str], after_seq: int) -> int:
    if not ids:
        return 0
    params = {"ids": [*ids], "network": network_id, "after": after_seq}
    [count] = fetch_values(int, sql, params, prepare=True)
    return count


def withdraw(ids: Sequence[str]) -> None:
    """Mark events as no longer in the chain."""
    fetch(_WITHDRAW, {"ids": [*ids]}, prepare=True)


def correct(rows: Mapping[str, EventRow]) -> None:
    """Let the events with these ids be as their rows say."""
    if rows:
        params = {"object_id": [*rows], **EVENT.updated.parameters([*rows.values()])}
        fetch(_CORRECT, params, prepare=True)


def date(network_id: int, times: Mapping[tuple[int, str], str]) -> int:
    """Give events that lack it the time of their block, by its height and hash; return how many."""
    blocks = [*times]
    params = {
        "numbers": [number for number, _ in blocks],
        "hashes": [hash_ for _, hash_ in blocks],
        "times": [*times.values()],
        "network": str(network_id),
    }
    return len(fetch_values(bool, _DATE, params, prepare=True))
