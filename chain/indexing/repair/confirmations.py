"""Whether what a provider says of a block is proved, before stored events are changed for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chain import rpc
from chain.core.blocks import consistency
from chain.core.blocks.differences import (
    Difference,
    Identity,
    differ_in_transaction_alone,
    identity_of,
)
from chain.core.blocks.hashes import has_own_hash
from chain.core.failures import NodeFailure
from chain.core.node import Header, Log, LogFilter, Node
from chain.indexing import verification
from chain.indexing.repair.repairs import StoredEvent


def unproved_blocks(
    node: Node,
    headers: Sequence[Header],
    logs: Sequence[Log],
    log_filter: LogFilter,
    differences: Difference,
    stored: Mapping[Identity, StoredEvent],
) -> list[int]:
    """The heights at which what differs isn't proved by the block's receipts, although its
    header has its own hash: one provider alone must not change what several have agreed on.
    No receipt proves the hash of its transaction, so two providers have to confirm these."""
    heights = {*differences.blocks()}
    hashes_alone = {
        row.block_number
        for row in differences.different
        if differ_in_transaction_alone(stored[identity_of(row)], row)
    }
    unproved = []
    for header in headers:
        if header.height not in heights or not has_own_hash(header):
            continue
        its_logs = [log for log in logs if log.block_hash == header.hash]
        if not _are_proved(node, header, its_logs, log_filter) or (
            header.height in hashes_alone
            and not _are_confirmed(node.network_id, header, its_logs, log_filter)
        ):
            unproved.append(header.height)
    return unproved


def _are_confirmed(
    network_id: int, header: Header, logs: Sequence[Log], log_filter: LogFilter
) -> bool:
    """Whether two providers, or the only one of the network, return these logs of the block."""
    try:
        answers = rpc.witnesses(network_id, lambda node: node.logs_of(log_filter, [header.hash]))
    except NodeFailure:
        return False
    return all(consistency.are_same(logs, same) for [same] in answers)


def _are_proved(node: Node, header: Header, logs: Sequence[Log], log_filter: LogFilter) -> bool:
    try:
        return verification.evidence.are_proved(node, header, logs, log_filter)
    except NodeFailure:
        return False
