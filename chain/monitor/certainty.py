"""Up to which block a network is certain, by what its reader has seen, else by what a node says."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from chain import rpc
from chain.core.blocks.finality import Heights, heights
from chain.core.failures import NodeFailure
from chain.core.node import Node, header_in
from objects.database.statements import fetch_rows

_FRESH: Final = 60  # seconds
_HIGHEST: Final = 2**52


class _Cursor(NamedTuple):
    head: int
    safe: int | None
    finalized: int | None


def certain_heights(node: Node, network_id: int, depth: int | None) -> Heights:
    """What is safe and final. ``depth`` is the network's own, see ``chain.core.blocks.finality``.
    One of several providers alone makes nothing so."""
    rows = fetch_rows(
        _Cursor,
        # A head alone is what one node says; blocks that were read are the chain.
        "SELECT LEAST(c.head, c.number + b.confirmations), c.safe, c.finalized"
        " FROM chain_cursor c JOIN chain_blockchain b ON b.network_id = c.network_id"
        " WHERE c.network_id = %(network)s AND c.head IS NOT NULL AND c.finalized IS NOT NULL"
        f" AND c.looked_at > statement_timestamp() - interval '{_FRESH} seconds'",
        {"network": network_id},
        prepare=True,
    )
    if rows:
        head, safe, final = rows[0].head, rows[0].safe, rows[0].finalized
    else:
        tags = ("latest", "safe", "finalized")
        calls = [("eth_getBlockByNumber", (tag, False)) for tag in tags]
        latest, safe, final = map(_number, node.batch(calls))
        head = latest or 0
        if (limit := rpc.witnessed(network_id)) is not None:
            head = min(head, max(0, limit))
    return heights(network_id, head, safe, final, depth)


def _number(answer: msgspec.Raw | NodeFailure) -> int | None:
    """The height; None if the request was refused or there is no such block yet."""
    if isinstance(answer, NodeFailure):
        return None
    block = header_in(answer)
    return None if block is None or block.height >= _HIGHEST else block.height
