"""New blocks include transactions; reorganisations revert them (docs/chain-transactions.md).

For whoever reads a network: ``seen = receipts_for(…)`` with the node that the blocks came from,
before its transaction; ``record(seen)`` in the transaction that stores the blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chain.core.node import Header, Node
from chain.core.transactions.states import ORPHANED, Mined, next_state
from chain.models.stored import TransactionRow
from chain.monitor import node_requests
from chain.monitor.checks import choices
from chain.monitor.rows import followed, select_transactions, write
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_values

# What may still change by being in a block: all but those that are done with.
_OPEN = "(t.status IN ('pending', 'stalled') OR t.finality IN ('included', 'safe', 'orphaned'))"
_MOST_AT_ONCE = 50_000  # hashes in one query, about
_UNFINAL = "t.finality IN ('included', 'safe')"
_SELECT = select_transactions("statement_timestamp()")


class _Place(NamedTuple):
    hash: str
    block_hash: str | None
    finality: str | None


@dataclass(frozen=True, slots=True)
class Seen:
    """Blocks, and the receipts of the followed transactions in them."""

    network_id: int
    blocks: tuple[tuple[int, str], ...]
    found: dict[str, Mined] = field(default_factory=dict)


def receipts_for(network_id: int, headers: Sequence[Header], node: Node) -> Seen:
    """The receipts of the followed transactions that these blocks have, in one request; none if
    they have none. Raises what the node raises, but for receipts that it doesn't have: replicas
    lag behind, and the next check finds them."""
    blocks = tuple((header.height, header.hash.lower()) for header in headers)
    block_of: dict[str, str] = {}
    some: dict[str, str] = {}
    for header in headers:
        some |= {one.lower(): header.hash.lower() for one in node.transactions_in(header)}
        if some and (len(some) > _MOST_AT_ONCE or header is headers[-1]):
            block_of |= _changed(network_id, some)
            some = {}
    if not block_of:
        return Seen(network_id, blocks)
    answers = node_requests.receipts_at_once(node, [*block_of])
    found = {
        tx_hash: mined
        for tx_hash, mined in answers.items()
        # Of another block: the chain has moved meanwhile, and its indexer will notice.
        if mined is not None and mined.block_hash == block_of[tx_hash]
    }
    return Seen(network_id, blocks, found)


def _changed(network_id: int, block_of: Mapping[str, str]) -> dict[str, str]:
    """Of transactions and the hashes of their blocks, those that are monitored and whose block
    isn't the one that is stored."""
    rows = fetch_rows(
        _Place,
        f"SELECT {select_list(_Place, 't')} FROM chain_transaction t"
        f" WHERE t.network_id = %(network)s AND t.hash = ANY(%(hashes)s::text[]) AND {_OPEN}",
        {"network": str(network_id), "hashes": [*block_of]},
        prepare=True,
    )
    return {
        row.hash: block_of[row.hash]
        for row in rows
        if block_of[row.hash] != row.block_hash or row.finality == ORPHANED
    }


def record(inclusions: Seen) -> int:
    """Store what was seen, inside the transaction that stores the blocks; how many transactions
    have changed. Those that were said to be in other blocks of these heights are looked for."""
    rows = fetch_rows(
        TransactionRow,
        f"{_SELECT} WHERE t.network_id = %(network)s"
        f" AND (t.hash = ANY(%(seen)s::text[]) AND {_OPEN}"
        f" OR {_UNFINAL} AND t.block_number = ANY(%(heights)s::bigint[])"
        " AND NOT t.hash = ANY(%(seen)s::text[])"
        " AND NOT t.block_hash = ANY(%(block_hashes)s::text[]))"
        " ORDER BY t.object_id FOR UPDATE",
        {
            "network": str(inclusions.network_id),
            "seen": [*inclusions.found],
            "heights": [height for height, _ in inclusions.blocks],
            "block_hashes": [block_hash for _, block_hash in inclusions.blocks],
        },
        prepare=True,
    )
    changed, lost = [], []
    decided = choices()
    for stored in rows:
        row, now = followed(stored), stored.now
        mined = inclusions.found.get(row.hash)
        if mined is None:
            lost.append(row.object_id)
            continue
        new = next_state(row.record, mined, now, timed=False, choices=decided)
        if new != row.record:
            changed.append((row, new))
    _look_for(lost)
    return write(changed)


def _look_for(object_ids: Sequence[str]) -> None:
    if object_ids:
        fetch(
            "UPDATE chain_transaction SET next_check_at = statement_timestamp()"
            " WHERE object_id = ANY(%(ids)s::text[])",
            {"ids": [*object_ids]},
            prepare=True,
        )


def on_reorganisation(network_id: int, above: int) -> int:
    """Have the transactions looked for that were in blocks above this height, which are gone; how
    many there are. Inside the transaction that marks the blocks.

    They keep their status until a node has said where they are now, and stalled ones their late
    receipt.
    """
    fetch(
        "UPDATE chain_transaction SET next_check_at = statement_timestamp()"
        " WHERE network_id = %(network)s AND next_check_at IS NOT NULL AND status = 'stalled'"
        " AND CASE WHEN jsonb_typeof(late_receipt -> 'blockNumber') = 'number'"
        " THEN (late_receipt -> 'blockNumber')::numeric > %(above)s ELSE false END",
        {"network": str(network_id), "above": above},
        prepare=True,
    )
    object_ids = fetch_values(
        str,
        "SELECT t.object_id FROM chain_transaction t"
        f" WHERE t.network_id = %(network)s AND t.block_number > %(above)s AND {_UNFINAL}"
        " ORDER BY t.object_id FOR UPDATE",
        {"network": str(network_id), "above": above},
        prepare=True,
    )
    _look_for(object_ids)
    return len(object_ids)
