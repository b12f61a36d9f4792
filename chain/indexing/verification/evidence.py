"""What decides between two providers that differ, for ``chain.rpc.agreed``."""

from __future__ import annotations

from collections.abc import Sequence

from chain.core.blocks import consistency
from chain.core.blocks.hashes import has_own_hash
from chain.core.blocks.receipts import have_root, logs_in
from chain.core.node import Header, Log, LogFilter, Node
from chain.indexing.verification import capabilities


def is_refuted(network_id: int, header: Header) -> bool:
    """Whether this can't be a header of the network: those have their own hashes, and this one has
    not."""
    return (
        capabilities.has(network_id, "proves_hashes")
        and not capabilities.is_without_hash(network_id, header.height)
        and not has_own_hash(header)
    )


def are_proved(node: Node, header: Header, logs: Sequence[Log], log_filter: LogFilter) -> bool:
    """Whether these are all the wanted logs of the block, apart from the hashes of transactions:
    the header has its own hash, and the node has the receipts with its root. Raises
    ``NodeFailure``."""
    if not has_own_hash(header):
        return False
    receipts = next(node.block_receipts([header]))
    return (
        receipts is not None
        and have_root(header, receipts)
        and consistency.contents(logs_in(header, receipts, log_filter))
        == consistency.contents(logs)
    )
