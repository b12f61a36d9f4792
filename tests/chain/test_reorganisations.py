"""A chain that changes takes its events back, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from chain.models import Block, ContractEvent, OutboxEntry, Reorganisation
from tests.chain.indexed_network import Network, listen, network
from tests.evm.node import Node

pytestmark = pytest.mark.django_db

HEIGHT = 70
KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
"""Of the node's second account, as every anvil has it."""


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network followed up to its head, with events in some of its blocks."""
    with network(node) as world:
        listen(world)
        world.follow()
        for _ in range(3):
            node.mine(HEIGHT // 3)
            world.mint(2)
        world.follow()
        world.check()
        assert len(world.shown()) == 6
        yield world


@pytest.mark.parametrize("depth", [1, 2, 7, 33, 63, 64])
@pytest.mark.parametrize("is_included_again", [False, True], ids=["lost", "included again"])
def test_events_of_blocks_that_are_gone_are_taken_back(
    world: Network, depth: int, is_included_again: bool
) -> None:
    random = Random(depth)
    old = world.cursor
    numbers = [
        (world.gem.request("spam", random.randrange(1, 4)), random.randrange(depth))
        for _ in range(3 if is_included_again else 0)
    ]
    world.node.reorg(depth, numbers)
    world.follow()
    world.check()
    row = Reorganisation.objects.get()
    assert (row.depth, row.fork_number) == (depth, old.number - depth)
    assert (row.old_number, row.old_hash) == (old.number, old.hash)
    assert row.removed_events == OutboxEntry.objects.filter(op="removed").count() > 0
    # Marked, not deleted.
    assert ContractEvent.objects.filter(canonical=False).count() == row.removed_events
    assert Block.objects.filter(canonical=False).count() == depth


def test_a_chain_that_comes_back_brings_its_events_back(world: Network) -> None:
    """From one branch to another and back, the same blocks by hash."""
    ours = [_block(world) for _ in range(3)]
    world.follow()
    shown = dict(ContractEvent.objects.filter(canonical=True).values_list("pk", "block_hash"))
    world.node.rollback(3)
    for _ in range(4):
        world.mint(1)
    world.follow()
    world.check()
    world.node.rollback(4)
    for raw, block in ours:
        _again(world, raw, block)
    world.node.mine(2)
    world.follow()
    world.check()
    back = dict(ContractEvent.objects.filter(canonical=True).values_list("pk", "block_hash"))
    assert back == shown
    assert Reorganisation.objects.count() == 2


def _block(world: Network) -> tuple[str, dict[str, Any]]:
    """A block with two logs, and the transaction that they are of."""
    raw = world.node.signed(KEY, {"to": world.gem.address, "data": world.gem.data("spam", 2)})
    world.node.send_raw(raw)
    world.node.mine()
    return raw, world.node.block()


def _again(world: Network, raw: str, block: dict[str, Any]) -> None:
    """The very same block."""
    world.node.rpc("evm_setNextBlockTimestamp", block["timestamp"])
    world.node.rpc("anvil_setNextBlockBaseFeePerGas", block["baseFeePerGas"])
    world.node.send_raw(raw)
    world.node.mine()
    assert world.node.block()["hash"] == block["hash"]


def test_random_ones_one_after_the_other(world: Network) -> None:
    random = Random(7)
    for _ in range(12):
        depth = random.randrange(1, 30)
        numbers = [
            (world.gem.request("spam", random.randrange(1, 4)), random.randrange(depth))
            for _ in range(random.randrange(3))
        ]
        world.node.reorg(depth, numbers)
        for _ in range(random.randrange(3)):
            world.mint(random.randrange(1, 4))
        world.follow()
        world.check()


@pytest.mark.slow
def test_every_depth_one_after_the_other(world: Network) -> None:
    for depth in range(1, 65):
        world.node.mine(1)
        world.mint(2)
        world.node.mine(max(0, depth - 5))
        world.follow()
        requests = [(world.gem.request("spam", 1), depth // 2)] if depth % 2 else []
        world.node.reorg(depth, requests)
        world.follow()
        world.check()
    assert Reorganisation.objects.count() == 64


@pytest.mark.parametrize("depth", [1, 64])
def test_four_requests_are_enough_for_64_blocks(world: Network, depth: int) -> None:
    world.node.reorg(depth, [(world.gem.request("spam", 2), 0)])
    assert world.requests() <= 4  # of which one is for the chain id
    world.check()


def test_a_chain_that_has_become_shorter_is_followed(world: Network) -> None:
    world.node.rollback(5)
    world.mint(3)
    world.follow()
    world.check()
    assert Reorganisation.objects.count() == 1
