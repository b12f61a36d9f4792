"""New blocks include transactions; reorganisations revert them (docs/chain-transactions.md).

For whoever reads a network: ``seen = receipts_for(…)`` with the node that the blocks came from,
before its transaction; ``record(seen)`` in the transaction that stores the blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chain.core.node import Header, Node
from chain.core.transactions.states import ORPHANED, Mined, next_state
from chain.monitor import node_requests
from chain.monitor.checks import choices
from chain.monitor.storage import blocks as rows
from chain.monitor.storage.checks import write
from chain.monitor.storage.rows import followed

_MOST_AT_ONCE = 50_000  # hashes in one query, about


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
    places = rows.open_places(network_id, block_of)
    return {
        row.hash: block_of[row.hash]
        for row in places
        if block_of[row.hash] != row.block_hash or row.finality == ORPHANED
    }


def record(inclusions: Seen) -> int:
    """Store what was seen, inside the transaction that stores the blocks; how many transactions
    have changed. Those that were said to be in other blocks of these heights are looked for."""
    affected = rows.lock_affected(inclusions.network_id, inclusions.found, inclusions.blocks)
    changed, lost = [], []
    decided = choices()
    for stored in affected:
        row, now = followed(stored), stored.now
        mined = inclusions.found.get(row.hash)
        if mined is None:
            lost.append(row.object_id)
            continue
        new = next_state(row.record, mined, now, timed=False, choices=decided)
        if new != row.record:
            changed.append((row, new))
    rows.check_now(lost)
    return write(changed)


def on_reorganisation(network_id: int, above: int) -> int:
    """Have the transactions looked for that were in blocks above this height, which are gone; how
    many there are. Inside the transaction that marks the blocks.

    They keep their status until a node has said where they are now, and stalled ones their late
    receipt.
    """
    rows.check_stalled_above(network_id, above)
    object_ids = rows.lock_included_above(network_id, above)
    rows.check_now(object_ids)
    return len(object_ids)
