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
from chain.monitor.storage.registration import is_unknown_elsewhere, move
from objects.database import maintenance

_PATIENCE: Final = 5.0


def claim(network_id: int, tx_hash: str) -> None:
    """Have the record of a hash be of this network, if another one's nodes have never known it and
    one of this network knows it now. Makes no request unless that is in question."""
    if not is_unknown_elsewhere(network_id, tx_hash):
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
