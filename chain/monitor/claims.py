"""A hash has one record, also where a client has named the wrong network first.

A transaction belongs to one network (EIP-155), so a record of which its network's nodes have never
known anything says nothing. It is moved to the network where the transaction is. What nodes have
known stays where it is: what was signed before EIP-155 may be on several networks, and is followed
on the one that was named first.
"""

from __future__ import annotations

from typing import Final

from chain import rpc
from chain.core.failures import NodeFailure
from chain.core.node import Node
from chain.monitor import node_requests
from objects.database import maintenance
from objects.database.statements import fetch

_PATIENCE: Final = 5.0
_UNKNOWN: Final = (
    "hash = %(hash)s AND network_id <> %(network)s AND status IN ('pending', 'stalled')"
    " AND from_address IS NULL AND block_number IS NULL AND late_receipt IS NULL"
)


def claim(network_id: int, tx_hash: str) -> None:
    """Have the record of a hash be of this network, if another one's nodes have never known it and
    one of this network knows it now. Makes no request unless that is in question."""
    waiting = fetch(
        f"SELECT 1 FROM chain_transaction WHERE {_UNKNOWN}",
        {"hash": tx_hash, "network": str(network_id)},
        prepare=True,
    )
    if not waiting:
        return

    def known(node: Node) -> bool:
        return node_requests.transactions(node, [tx_hash]).get(tx_hash) is not None

    try:
        is_here = rpc.attempt(network_id, known, seconds=_PATIENCE)
    except NodeFailure:
        return
    if is_here:
        with maintenance.recording(), maintenance.writing():
            move(network_id, tx_hash)


def move(network_id: int, tx_hash: str) -> None:
    """As ``claim``, for a caller that knows the transaction's network. It is monitored as if
    it began now. Part of the caller's transaction."""
    fetch(
        "UPDATE chain_transaction SET network_id = %(network)s, status = 'pending', attempts = 0,"
        " last_checked = NULL, pending_since = now.ms, next_check_at = now.ms, failed_checks = 0,"
        " missing_since = NULL, missing_checks = 0, updated_at = GREATEST(updated_at, now.ms)"
        " FROM (SELECT date_trunc('milliseconds', statement_timestamp()) AS ms) now"
        f" WHERE {_UNKNOWN}",
        {"hash": tx_hash, "network": str(network_id)},
        prepare=True,
    )
