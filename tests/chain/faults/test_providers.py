"""Two providers, of which now the one, now the other lies, lags or fails, while the chain grows and
is reorganised: nothing is stored that isn't on the chain, and in the end all that is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from chain.models import ContractEvent, Provider
from chain.rpc.pool import forget
from tests.chain.indexed_network import Network, listen, network
from tests.chain.rpc.networks import provider
from tests.evm import faults
from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied
from tests.random_seeds import DRAWN, seed_of

pytestmark = pytest.mark.django_db

Fault = Callable[[Proxy, Node], None]


def lag(proxy: Proxy, node: Node) -> None:
    faults.stay_at(proxy, node.head - 2)


def lie(proxy: Proxy, node: Node) -> None:
    proxy.on("eth_getLogs", faults.lying_about_blocks())


def invent(proxy: Proxy, node: Node) -> None:
    """Each log as one of another token."""
    proxy.on(
        "eth_getLogs",
        faults.altered(
            lambda logs: [
                {**log, "topics": [*log["topics"][:3], "0x" + "ee" * 32], "logIndex": "0x63"}
                for log in logs
            ]
        ),
    )


def withhold(proxy: Proxy, node: Node) -> None:
    proxy.on("eth_getLogs", faults.without_logs())


def take_back(proxy: Proxy, node: Node) -> None:
    proxy.on("eth_getLogs", faults.taken_back())


def refuse(proxy: Proxy, node: Node) -> None:
    proxy.refuse()


def break_off(proxy: Proxy, node: Node) -> None:
    proxy.on_request(faults.broken_off())


def hurry(proxy: Proxy, node: Node) -> None:
    proxy.on_request(faults.too_many_requests(retry_after=1))


def cut_batches(proxy: Proxy, node: Node) -> None:
    proxy.on_reply(faults.without(0))


FAULTS: list[Fault] = [
    lag,
    lie,
    invent,
    withhold,
    take_back,
    refuse,
    break_off,
    hurry,
    cut_batches,
]


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network with a contract that is listened to, read up to its head."""
    node.mine(70)
    with network(node) as world:
        listen(world)
        yield world


def step(world: Network, chance: random.Random) -> None:
    """Something happens on the chain."""
    for _ in range(chance.randrange(3)):
        world.mint(chance.randrange(1, 4))
    world.node.mine(chance.randrange(1, 3))
    if chance.random() < 0.2:
        depth = chance.randrange(1, 6)
        world.node.reorg(depth, [(world.gem.request("spam", 2), 0)] * chance.randrange(2))
        world.node.mine()


def rounds(world: Network, seed: int, count: int) -> None:
    chance = random.Random(seed)
    with ExitStack() as stack:
        pair = [stack.enter_context(proxied(world.node)) for _ in range(2)]
        for name, proxy in zip(("first", "second"), pair, strict=True):
            provider(proxy.url, name, world.network_id)
        world.follow()
        observed: set[tuple[str, int]] = set()
        for _ in range(count):
            step(world, chance)
            observed |= world.on_chain()
            chance.choice(FAULTS)(chance.choice(pair), world.node)
            no_pauses()
            world.follow()
            assert stored() <= observed, "stored, and never on the chain"
            for proxy in pair:
                proxy.be_good()
                proxy.accept()
            no_pauses()
            if chance.random() < 0.5:
                world.follow()
                world.check()
        world.node.mine(8)
        world.follow()
        world.check()


def no_pauses() -> None:
    """As when some time has passed. While a provider is left alone for what it did before, the
    other one is believed."""
    Provider.objects.update(paused_until=None, failures=0)
    forget()


def stored() -> set[tuple[str, int]]:
    """All that has ever been stored, removed events as well."""
    return {*ContractEvent.objects.values_list("block_hash", "log_index")}


def test_one_errs_at_a_time(world: Network) -> None:
    rounds(world, seed=1, count=12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, DRAWN])
def test_one_errs_at_a_time_for_long(world: Network, seed: int | str) -> None:
    rounds(world, seed_of(seed), count=100)
