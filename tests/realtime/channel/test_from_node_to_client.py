"""From a transaction on a node to the message, through the real reader of the chain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chain.indexing.head import indexer
from chain.models import Blockchain, OutboxEntry
from tests.chain.indexed_network import Network, listen, network
from tests.evm.node import Node, running_node
from tests.realtime.channel.channel import House

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with running_node() as node:
        yield node


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network with a contract that is listened to, read up to its head."""
    node.rpc("anvil_reset")
    node.automine(True)
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        yield world


def test_a_transfer_on_a_chain_becomes_a_message(world: Network, house: House) -> None:
    client = house.connect()
    sent = world.send(2)
    world.node.mine()
    client.is_told_nothing()
    world.follow()
    first, second = client.next(), client.next()
    logs = world.node.mined(sent)["logs"]
    assert first.keys() == second.keys() == {"event", "data"}
    token_ids = [int(item["data"]["tokenId"]) for item in (first, second)]
    assert token_ids == [int(log["topics"][3], 16) for log in logs]
    assert first["data"]["from"] == "0x" + "0" * 40
    assert first["data"]["to"].lower() == "0x" + logs[0]["topics"][2][-40:]
    assert first["data"]["to"] != first["data"]["to"].lower()
    client.is_told_nothing()


def test_what_a_reorganisation_brings_back_is_told_once(world: Network, house: House) -> None:
    plain, asking = house.connect(), house.connect("reorg=1")
    raw = world.node.rpc("eth_getRawTransactionByHash", world.send(2))
    world.node.mine()
    world.follow()
    tokens = plain.tokens(2)
    assert asking.tokens(2) == tokens
    # The same signed transaction in a later block of another chain.
    world.node.rollback(1)
    world.node.mine(2)
    world.node.send_raw(raw)
    world.node.mine()
    world.follow()
    world.check()
    plain.is_told_nothing()
    assert asking.tokens(4) == [-tokens[1], -tokens[0], *tokens]


def test_final_events_come_when_the_chain_says_so(world: Network, house: House) -> None:
    Blockchain.objects.update(finality_depth=4)
    plain, safe = house.connect(), house.connect("finality=safe&reorg=1")
    final = house.connect("finality=final&reorg=1&since=now")
    final.next()
    world.mint(2)
    world.follow()
    tokens = plain.tokens(2)
    final.is_told_nothing()
    world.node.mine(2)
    indexer.forget()  # heights are requested every ten seconds
    world.follow()
    assert safe.tokens(2) == tokens
    # Safe, and not final: another chain may come.
    world.node.rollback(3)
    world.mint(1)
    world.node.mine(3)
    world.follow()
    assert safe.next()["removed"]
    assert safe.next()["removed"]
    rows = OutboxEntry.objects.filter(network_id=world.network_id, op="removed")
    assert {*rows.values_list("finality", flat=True)} == {"safe"}
    indexer.forget()
    world.follow()
    [token] = safe.tokens(1)
    final.is_told_nothing()
    world.node.mine(1)
    indexer.forget()
    world.follow()
    assert final.tokens(1) == [token]
    world.check()
