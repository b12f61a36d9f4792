"""A network that is read as it grows, and what must always be true of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

from django.utils import timezone

from chain.indexing import head
from chain.indexing.contract_versions import contracts_changed
from chain.indexing.head import indexer
from chain.models import (
    Block,
    Blockchain,
    ContractEvent,
    Cursor,
    OutboxEntry,
    Provider,
    SmartContract,
)
from chain.rpc import pool
from objects.core.names import new_object_id
from tests.evm.artefacts import Contract
from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied

Identity = tuple[str, int]
"""Hash of the block and index of the log in it."""


@dataclass
class Network:
    """A network with a contract, behind a proxy."""

    node: Node
    proxy: Proxy
    gem: Contract

    @property
    def network_id(self) -> int:
        return self.node.chain_id

    @property
    def cursor(self) -> Cursor:
        return Cursor.objects.get(pk=self.network_id)

    def follow(self) -> Cursor:
        """Read what there is; where the cursor is then."""
        head.follow(self.network_id)
        return self.cursor

    def requests(self) -> int:
        """How many requests it takes to read what there is."""
        self.proxy.forget_counts()
        head.follow(self.network_id)
        return self.proxy.requests

    def send(self, count: int = 1) -> str:
        """A transaction with so many logs, for the next block."""
        return self.gem.transact("spam", count, gas=5_000_000)

    def mint(self, count: int = 1) -> None:
        """A block with so many logs."""
        sent = self.send(count)
        self.node.mine()
        assert self.node.receipt(sent) is not None

    def shown(self) -> set[Identity]:
        """The events that clients see."""
        results = ContractEvent.objects.filter(canonical=True, network_id=str(self.network_id))
        return {*results.values_list("block_hash", "log_index")}

    def on_chain(self) -> set[Identity]:
        """The same as the node says it, of the blocks that are followed."""
        first = (self.cursor.began_at or 0) + 1
        logs = self.node.logs(first, address=self.gem.address) if self.node.head >= first else []
        return {(log["blockHash"], int(log["logIndex"], 16)) for log in logs}

    def told(self) -> set[Identity]:
        """What a subscriber knows who has applied the whole outbox, each row in its turn."""
        columns = ("object_id", "block_hash", "log_index")
        place = {row[0]: row[1:] for row in ContractEvent.objects.values_list(*columns)}
        rows = OutboxEntry.objects.filter(network_id=self.network_id).order_by("seq")
        existing: set[Identity] = set()
        seqs = []
        for seq, op, event_id in rows.values_list("seq", "op", "event_id"):
            seqs.append(seq)
            item = place[event_id]
            assert (item in existing) == (op == "removed"), "told twice, or taken back twice"
            (existing.discard if op == "removed" else existing.add)(item)
        assert seqs == list(range(1, len(seqs) + 1))
        assert self.cursor.outbox == len(seqs)
        return existing

    def check(self) -> None:
        """Everything is as on the chain: events, outbox, headers, cursor."""
        truth = self.on_chain()
        assert self.shown() == truth
        assert self.told() == truth
        cursor = self.cursor
        assert cursor.number == self.node.head
        assert cursor.hash == self.node.block()["hash"]
        blocks = Block.objects.filter(network_id=self.network_id, canonical=True)
        chain = list(blocks.order_by("number").values_list("number", "hash", "parent_hash"))
        for (number, hash_, _), (after, _, parent) in pairwise(chain):
            assert after > number
            assert after != number + 1 or parent == hash_


def let_a_minute_pass() -> None:
    """Until halted networks are compared again, and providers that are left alone are used."""
    Cursor.objects.update(halt_checked_at=timezone.now() - timedelta(seconds=60))
    Provider.objects.update(paused_until=None)
    pool.forget()


@contextmanager
def network(node: Node, **settings: Any) -> Iterator[Network]:
    """The network of a node, whose first look is still to come; its blocks are mined by hand.
    ``settings`` are columns of it."""
    with proxied(node) as proxy:
        Blockchain.objects.create(
            **_object(), network_id=node.chain_id, rpc_endpoint=proxy.url, **settings
        )
        indexer.forget()
        gem = node.deployed("Gem")
        node.automine(False)
        yield Network(node, proxy, gem)


def listen(world: Network, contract: Contract | None = None, name: str = "Gem") -> SmartContract:
    """Register a contract; the network's own if none is given."""
    contract = contract or world.gem
    made = SmartContract.objects.create(
        **_object(),
        name=name,
        address=contract.address,
        network_id=world.network_id,
        abi=[*contract.abi],
        start_block=0,
        listening=True,
    )
    contracts_changed({"networkId": world.network_id})
    return made


def _object() -> dict[str, object]:
    now = timezone.now()
    return {"object_id": new_object_id(), "created_at": now, "updated_at": now}
