"""A network whose chain has a past, for tests of what reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from chain.indexing import contracts
from chain.models import Backfill, Block, Blockchain, ContractEvent, Cursor, SmartContract
from objects.core.names import new_object_id
from tests.evm.artefacts import Contract
from tests.evm.node import Node

Identity = tuple[int, int, str]


def forget_contracts() -> None:
    """Versions of a network's contracts start from scratch with each test's tables."""
    contracts._catalogues.clear()


def new_network(node: Node, url: str | None = None) -> int:
    """The node's network, of which nothing has been read."""
    forget_contracts()
    Blockchain.objects.create(**_object(), network_id=node.chain_id, rpc_endpoint=url or node.url)
    return node.chain_id


def network_of(node: Node, url: str | None = None) -> int:
    """The node's network, as the follower leaves it when it has met it now."""
    new_network(node, url)
    block = node.block()
    height = int(block["number"], 16)
    Cursor.objects.update_or_create(
        network_id=node.chain_id,
        defaults={
            "number": height,
            "hash": block["hash"],
            "began_at": height,
            "finalized": height,
            "head": height,
            "looked_at": timezone.now(),
        },
    )
    return node.chain_id


def not_final_above(network_id: int, node: Node, height: int) -> None:
    """Let the blocks above this height be such as the follower has read and may lose again."""
    Cursor.objects.filter(pk=network_id).update(finalized=height, began_at=height)
    for number in range(height + 1, node.head + 1):
        keep_header(network_id, node.block(number))


def keep_header(network_id: int, block: dict[str, Any]) -> None:
    Block.objects.create(
        network_id=network_id,
        hash=block["hash"],
        number=int(block["number"], 16),
        parent_hash=block["parentHash"],
        timestamp=int(block["timestamp"], 16),
    )


def listen(contract: Contract, *, start: int | None = 0, name: str = "Gem") -> SmartContract:
    """Register a contract, as the follower's next step will find it."""
    return register(contract.node.chain_id, contract.address, contract.abi, start, name)


def register(
    network_id: int, address: str, abi: Sequence[Any], start: int | None, name: str
) -> SmartContract:
    made = SmartContract.objects.create(
        **_object(),
        name=name,
        address=address,
        network_id=network_id,
        abi=[*abi],
        start_block=start,
        listening=True,
    )
    changed(network_id)
    return made


def changed(network_id: int) -> None:
    """The contracts of the network are others than before."""
    cursor = Cursor.objects.get(pk=network_id)
    Cursor.objects.filter(pk=network_id).update(contracts=cursor.contracts + 1)


def change(contract: SmartContract, **fields: Any) -> None:
    SmartContract.objects.filter(pk=contract.pk).update(**fields)
    changed(int(contract.network_id or 0))


def spam(contract: Contract, count: int) -> None:
    """Have a contract log so much, in a block that is there afterwards."""
    contract.node.mined(contract.transact("spam", count))


def stored() -> list[Identity]:
    """The events that clients are shown, each by its place in the chain."""
    rows = ContractEvent.objects.filter(canonical=True).order_by("block_number", "log_index")
    return [*rows.values_list("block_number", "log_index", "block_hash")]


def on_chain(node: Node, last: int | None = None, **expected: Any) -> list[Identity]:
    """The same as the node says it."""
    logs = node.logs(0, last, **expected)
    return [
        (int(log["blockNumber"], 16), int(log["logIndex"], 16), log["blockHash"]) for log in logs
    ]


def open_ranges(network_id: int) -> list[tuple[int, int]]:
    """What is still to be read, by next and last block."""
    results = Backfill.objects.filter(network_id=network_id, done_at=None)
    return [*results.order_by("next_block", "pk").values_list("next_block", "last_block")]


def _object() -> dict[str, Any]:
    now = timezone.now()
    return {"object_id": new_object_id(), "created_at": now, "updated_at": now}
