"""Which stored events are certainly not in the chain."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from chain.core.blocks.differences import Difference, Identity
from chain.core.failures import NodeFailure, TryAgain
from chain.core.node import Hash, Node, Number
from chain.indexing.repair.repairs import StoredEvent


def superfluous_events(
    node: Node,
    differences: Difference,
    hashes: Collection[str],
    stored: Mapping[Identity, StoredEvent],
) -> tuple[set[Identity], list[int]]:
    """Which events are certainly not in the chain, and the blocks in which that isn't sure: a
    receipt that isn't there, or that holds the log. ``hashes`` are those of the chain's blocks."""
    gone = {identity for identity in differences.superfluous if identity.block_hash not in hashes}
    doubtful: set[int] = set()
    remaining = [identity for identity in differences.superfluous if identity not in gone]
    sent = sorted({stored[identity].transaction_hash for identity in remaining})
    calls = [("eth_getTransactionReceipt", (identity,)) for identity in sent]
    receipts = dict(zip(sent, node.batch(calls), strict=True))
    for identity in remaining:
        answer = receipts[stored[identity].transaction_hash]
        if isinstance(answer, TryAgain):
            raise answer
        if isinstance(answer, NodeFailure) or _may_have(answer, identity):
            doubtful.add(identity.block_number)
        else:
            gone.add(identity)
    return gone, sorted(doubtful)


class _Place(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    block_hash: Hash
    log_index: Number


class _Places(msgspec.Struct, frozen=True, gc=False):
    logs: list[_Place] = []


_places: Final = msgspec.json.Decoder(_Places | None)


def _may_have(receipt: msgspec.Raw, identity: Identity) -> bool:
    """Whether a receipt has a log at this place, or isn't there."""
    try:
        logs_of_receipt = _places.decode(receipt)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise TryAgain("a receipt that isn't one") from None
    return logs_of_receipt is None or any(
        log.block_hash == identity.block_hash and int(log.log_index, 16) == identity.log_index
        for log in logs_of_receipt.logs
    )
