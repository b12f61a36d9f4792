"""Blocks that are not final yet, read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chain import rpc
from chain.core.blocks.events import EventRow
from chain.core.failures import Moved
from chain.core.node import Log, Node
from chain.indexing import contracts
from chain.indexing.block_times import read_block_times
from chain.indexing.contracts import Catalogue
from chain.indexing.history.progress import Group, Lost, Part, commit_recent
from chain.indexing.storage import block_rows
from chain.indexing.storage.events import make_ready
from chain.indexing.verification import Scheme, verified

_AT_ONCE: Final = 50  # blocks


def read_recent(group: Group, chosen: Catalogue, number: int) -> bool:
    """Read some blocks up to the cursor's. False if the follower has to go on first.

    Blocks are requested by hash, so a response is of that block or empty.
    """
    last = min(group.last, number, group.first + _AT_ONCE - 1)
    blocks = block_rows.between(group.network_id, group.first, last)
    if [height for height, _ in blocks] != list(range(group.first, last + 1)):
        return False
    hashes = [hash_ for _, hash_ in blocks]

    scheme = Scheme.of_network(group.network_id)

    def step(node: Node) -> list[EventRow]:
        headers = node.headers(hashes)
        if any(
            header is None or header.hash != hash_
            for header, hash_ in zip(headers, hashes, strict=True)
        ):
            raise Moved("a block is not in the chain any more")
        complete = [header for header in headers if header is not None]
        logs = [log for some in node.logs_of(chosen.wanted, hashes) for log in some]
        logs = verified(node, complete, logs, chosen.wanted, scheme, by_hash=True)
        look_behind(node, chosen, logs)
        return chosen.read(logs, read_block_times(node, logs, complete).by_hash)

    rows = rpc.attempt(group.network_id, step)
    commit_recent(group, Part(last, make_ready(rows)), chosen.version, blocks)
    return True


def look_behind(node: Node, chosen: Catalogue, logs: Sequence[Log]) -> None:
    """Find out whose code contracts run before their logs are decoded. ``Lost`` if there is
    something that wasn't known when they were read: then there are more ABIs to read them by."""
    for _ in range(1 + len(chosen.contracts) // contracts.MOST_LOOKED_AT):
        if contracts.refresh(node.network_id, node, logs):
            raise Lost("contracts run other code than was known")
        if not any(contract.is_due for contract in chosen.contracts.values()):
            return
