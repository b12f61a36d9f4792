"""A signed transaction that comes again in another block (F4): one event that is shown, one record
that has moved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chain import monitor
from chain.models import ContractEvent, OutboxEntry, Transaction
from chain.rpc.web3_library import eth_account
from tests.chain.indexed_network import Network, listen, network
from tests.evm.node import Node

pytestmark = pytest.mark.django_db

KEY = "0x" + "22" * 32


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network with a contract that is listened to, read up to its head."""
    node.give(eth_account().Account.from_key(KEY).address)
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        yield world


@pytest.mark.parametrize("lower", [0, 3], ids=["as high as before", "with blocks between"])
def test_event_and_record_move_to_the_new_block(world: Network, lower: int) -> None:
    node = world.node
    taken = node.snapshot()
    signed = node.signed(KEY, world.gem.request("mint", node.accounts[1]))
    tx_hash = node.send_raw(signed)
    node.mine(2)
    monitor.start(world.network_id, tx_hash)
    world.follow()
    first = Transaction.objects.get()
    assert first.status == "confirmed"
    [removed] = ContractEvent.objects.all()

    node.revert(taken)
    node.mine(1 + lower)  # other blocks first, since the same at the same height would be the same
    node.send_raw(signed)
    node.mine(3)
    world.follow()

    world.check()
    record = Transaction.objects.get()
    receipt = node.mined(tx_hash)
    assert record.object_id == first.object_id
    assert (record.status, record.reorg_count) == ("confirmed", 1)
    assert record.block_hash == receipt["blockHash"] != first.block_hash
    assert record.block_number == int(receipt["blockNumber"], 16)
    [event] = ContractEvent.objects.filter(canonical=True)
    assert event.object_id != removed.object_id
    same = ("transaction_hash", "ordinal", "args")
    assert [getattr(event, name) for name in same] == [getattr(removed, name) for name in same]
    rows = OutboxEntry.objects.order_by("seq").values_list("op", "event_id")
    assert [*rows] == [
        ("added", removed.object_id),
        ("removed", removed.object_id),
        ("added", event.object_id),
    ]
