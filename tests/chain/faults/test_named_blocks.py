"""A provider that names a newest block which isn't there: the network is read from the other one,
and what is stored is what is on the chain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.chain.indexed_network import Network, listen, network
from tests.chain.rpc.networks import provider
from tests.evm.node import Node
from tests.evm.proxy import Call, Proxy, proxied

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    node.mine(70)
    with network(node) as world:
        listen(world)
        yield world


def boast(proxy: Proxy, blocks: int) -> None:
    """Let the provider name a newest block that is so much higher."""

    def answer(call: Call) -> Any:
        results = call.forward()
        if call.params[0] != "latest":
            return results
        return {**results, "number": hex(int(results["number"], 16) + blocks)}

    proxy.on("eth_getBlockByNumber", answer)


@pytest.mark.parametrize("weights", [(10, 0), (0, 10), (10, 10)])
@pytest.mark.parametrize("blocks", [1, 30, 10**9])
def test_a_head_that_is_not_there_stops_nothing(
    world: Network, weights: tuple[int, int], blocks: int
) -> None:
    with ExitStack() as stack:
        pair = [stack.enter_context(proxied(world.node)) for _ in range(2)]
        for name, proxy, weight in zip(("boaster", "honest"), pair, weights, strict=True):
            provider(proxy.url, name, world.network_id, weight=weight)
        world.follow()
        boast(pair[0], blocks)
        for _ in range(4):
            world.mint(2)
            world.node.mine(2)
            # A look may end with both being left alone for a while; the next ones find out.
            for _ in range(3):
                world.follow()
            assert world.cursor.number == world.node.head
        world.check()


def test_a_single_provider_that_boasts_is_read_as_far_as_it_goes_again_afterwards(
    world: Network,
) -> None:
    world.follow()
    boast(world.proxy, 5)
    world.mint()
    before = world.follow().number
    world.proxy.be_good()
    assert before is not None
    assert world.follow().number == world.node.head
    world.check()
