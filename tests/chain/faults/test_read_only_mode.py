"""The system is read-only for clients (F22): what happens on the chain is recorded all the same,
unless the chain is paused as well."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chain import monitor
from chain.models import Transaction
from objects.database import maintenance
from tests.chain.indexed_network import Network, listen, network
from tests.evm.node import Node
from tests.rest import Api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network with a contract that is listened to, read up to its head."""
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        yield world


def test_saves_are_refused_while_events_and_transactions_are_recorded(
    world: Network, client: Api, master: Api
) -> None:
    node = world.node
    sent = world.send(2)
    monitor.start(world.network_id, sent)

    maintenance.on()
    try:
        node.mine(2)
        world.follow()
        world.check()
        assert len(world.shown()) == 2
        assert Transaction.objects.get().status == "confirmed"
        assert client.get("/classes/ContractEvent?count=1&limit=0").json["count"] == 2
        for caller in (client, master):
            assert caller.post("/classes/Note", {"text": "later"}).error == (400, 119)
        wallet = {"walletAddress": node.accounts[0]}
        assert master.post("/classes/Identity", wallet).error == (400, 119)
    finally:
        maintenance.off()


def test_a_paused_chain_waits_and_loses_nothing(world: Network) -> None:
    maintenance.on(pause_chain=True)
    try:
        before = world.cursor.number
        world.mint(2)
        world.follow()
        assert world.cursor.number == before
        assert world.shown() == set()
    finally:
        maintenance.off()
    world.follow()
    world.check()
    assert len(world.shown()) == 2
