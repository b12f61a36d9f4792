"""A provider lies while the chain grows and is reorganised: what a client has received and applied
is the chain in the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from chain.indexing.repair.audits import audit
from chain.models import Blockchain
from tests.chain.indexed_network import Network, let_a_minute_pass, listen, network
from tests.chain.lying_network import contents, truth
from tests.evm.liar import Liar, Lie
from tests.evm.node import Node, running_node
from tests.realtime.channel.channel import Client, House

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 8


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with running_node() as node:
        yield node


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network with a contract, of whose events subscribers receive all."""
    node.rpc("anvil_reset")
    node.automine(True)
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        yield world


@pytest.mark.parametrize("verify", ["sample", "all"])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.slow
def test_a_client_ends_with_the_events_of_the_chain(
    world: Network, house: House, verify: str, seed: int
) -> None:
    Blockchain.objects.update(verify=verify)
    random = Random(seed)
    liar = Liar(world.proxy, seed)
    client = house.connect(f"network={world.network_id}&reorg=1&since=0&event=*")
    received: Counter[str] = Counter()
    world.mint(2)
    world.follow()
    for _ in range(ROUNDS):
        kinds = random.sample(["drop", "change", "retopic", "invent", "reorder"], 2)
        liar.lie(*(Lie(kind, rate=random.choice([0.3, 1.0])) for kind in kinds))  # type: ignore[arg-type]
        _happen(world, random)
        world.follow()
        _apply(client, received)
        if verify == "all":
            assert contents(world) == truth(world)
    for _ in range(2):
        let_a_minute_pass()
        audit(world.network_id)
    liar.be_honest()
    world.node.mine(1 + max(0, (world.cursor.number or 0) - world.node.head))
    world.follow()
    _apply(client, received)
    expected = Counter(_as_text(event[5], json.loads(event[6])) for event in truth(world))
    assert +received == expected
    assert contents(world) == truth(world)


def _happen(world: Network, random: Random) -> None:
    if random.random() < 0.4:
        depth = random.randrange(1, 3)
        world.node.reorg(depth, [(world.gem.request("spam", 2), 0)])
    for _ in range(random.randrange(1, 4)):
        world.gem.transact("spam", random.randrange(1, 3), gas=2_000_000)
        world.gem.transact("spamMinted", 1, 0, gas=2_000_000)
        world.node.mine()


def _apply(client: Client, received: Counter[str]) -> None:
    """Apply the messages of everything that is committed."""
    while client.has_more():
        message = client.next()
        if message["event"] != "hello":
            change = -1 if message.get("removed") else 1
            received[_as_text(message["event"], message["data"])] += change


def _as_text(name: Any, data: Any) -> str:
    return f"{name} {json.dumps(data, sort_keys=True)}"
