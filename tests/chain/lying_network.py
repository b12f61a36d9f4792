"""A network whose provider lies, for tests of what is stored nevertheless."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from chain.core.node import Log
from chain.indexing import contracts
from chain.models import Blockchain, ContractEvent
from tests.chain.indexed_network import Network, listen, network
from tests.evm.artefacts import Contract
from tests.evm.liar import Liar
from tests.evm.node import Node

Event = tuple[str, int, str, int, str, str | None, str]
"""Block, index, transaction, place of the transaction, address, name, arguments as JSON."""


@contextmanager
def lied_to(node: Node, *, verify: str = "sample", seed: int = 0) -> Iterator[tuple[Network, Liar]]:
    """A network that is read up to its head, and the liar that is its only provider."""
    node.mine(3)
    with network(node) as world:
        Blockchain.objects.update(verify=verify)
        liar = Liar(world.proxy, seed)
        listen(world)
        world.follow()
        world.mint(2)
        world.follow()
        world.check()
        yield world, liar


def contents(world: Network) -> set[Event]:
    """What clients are shown."""
    return events_shown(world.network_id)


def truth(world: Network) -> set[Event]:
    """The same by the node itself, of the blocks that were read."""
    cursor = world.cursor
    return events_on_chain(world.gem, (cursor.began_at or 0) + 1, cursor.number or 0)


def events_shown(network_id: int) -> set[Event]:
    """All events of a network that clients are shown."""
    rows = ContractEvent.objects.filter(canonical=True, network_id=str(network_id))
    return {
        (
            *(row.block_hash, row.log_index, row.transaction_hash, row.transaction_index),
            *(row.address, row.event_name, json.dumps(row.args, sort_keys=True)),
        )
        for row in rows
    }


def events_on_chain(contract: Contract, first: int, last: int) -> set[Event]:
    """The events of a contract in these blocks, as its node has them."""
    node = contract.node
    results = node.logs(first, address=contract.address) if last >= first else []
    logs = [log for log in msgspec.convert(results, list[Log]) if log.height <= last]
    return {
        (
            *(row.block_hash, row.log_index, row.transaction_hash, row.transaction_index),
            *(row.address, row.event_name, json.dumps(json.loads(row.args), sort_keys=True)),
        )
        for row in contracts.catalogue(node.chain_id).read(logs)
    }
