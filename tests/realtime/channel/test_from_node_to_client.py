"""From a transaction on a node to the message, through the real reader of the chain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from eth_utils import to_checksum_address

from chain.indexing.head import indexer
from chain.models import Blockchain, OutboxEntry
from tests.chain.indexed_network import Network, listen, network
from tests.evm.artefacts import Contract, topic
from tests.evm.node import Node, running_node
from tests.realtime.channel.channel import ProcessHarness

pytestmark = pytest.mark.django_db(transaction=True)

LOGGER = "0x" + "".join(
    (
        *("601c80", "6009", "5f39", "5ff3"),  # creation: return what follows
        *("36", "6005", "11", "601a", "57"),  # to the end if there is no more than a selector
        *("365f5f37", "604051", "602051", "5f51", "60603603", "6060", "a3"),
        *("5b", "00"),
    )
)
"""Bytecode of a contract that logs its call: three topics, then data."""


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


def test_a_transfer_on_a_chain_becomes_a_message(world: Network, harness: ProcessHarness) -> None:
    client = harness.connect()
    sent = world.send(2)
    world.node.mine()
    client.expect_nothing()
    world.follow()
    first, second = client.next(), client.next()
    logs = world.node.mined(sent)["logs"]
    assert first.keys() == second.keys() == {"event", "data"}
    token_ids = [int(item["data"]["tokenId"]) for item in (first, second)]
    assert token_ids == [int(log["topics"][3], 16) for log in logs]
    assert first["data"]["from"] == "0x" + "0" * 40
    assert first["data"]["to"].lower() == "0x" + logs[0]["topics"][2][-40:]
    assert first["data"]["to"] != first["data"]["to"].lower()
    client.expect_nothing()


@pytest.mark.parametrize("names", [("from", "to", "value"), ("from", "value", "to")])
def test_a_transfer_that_no_token_logs_is_sent_on_request_alone(
    world: Network, harness: ProcessHarness, names: tuple[str, ...]
) -> None:
    types = ("address", "uint256", "address")
    inputs = [
        {"name": name, "type": type_, "indexed": type_ == "address"}
        for name, type_ in zip(names, types, strict=True)
    ]
    world.node.automine(True)
    abi = [{"type": "event", "name": "Transfer", "inputs": inputs}]
    logger = Contract(world.node, world.node.deploy(LOGGER), abi)
    world.node.automine(False)
    listen(world, logger, name="Logger")
    world.follow()
    plain, every_kind = harness.connect(), harness.connect("event=*")
    sender = world.node.accounts[0]
    words = [topic(abi, "Transfer")[2:], *["00" * 12 + sender[2:]] * 2, f"{5:064x}"]
    world.node.send({"from": sender, "to": logger.address, "data": "0x" + "".join(words)})
    world.node.mine()
    world.follow()
    ann = to_checksum_address(sender)
    assert every_kind.next() == {
        "event": "Transfer",
        "data": dict(zip(names, (ann, "5", ann), strict=True)),
    }
    plain.expect_nothing()


def test_an_event_restored_by_a_reorganisation_is_sent_once(
    world: Network, harness: ProcessHarness
) -> None:
    plain, asking = harness.connect(), harness.connect("reorg=1")
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
    plain.expect_nothing()
    assert asking.tokens(4) == [-tokens[1], -tokens[0], *tokens]


@pytest.mark.slow
def test_final_events_are_sent_when_the_chain_reports_finality(
    world: Network, harness: ProcessHarness
) -> None:
    Blockchain.objects.update(finality_depth=4)
    plain, safe = harness.connect(), harness.connect("finality=safe&reorg=1")
    final = harness.connect("finality=final&reorg=1&since=now")
    final.next()
    world.mint(2)
    world.follow()
    tokens = plain.tokens(2)
    final.expect_nothing()
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
    final.expect_nothing()
    world.node.mine(1)
    indexer.forget()
    world.follow()
    assert final.tokens(1) == [token]
    world.check()
