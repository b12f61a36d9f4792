"""A process that reads a network may be killed anywhere, and others may read it at the same
moment: nothing is lost, nothing is double."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from chain.models import Reorganisation
from tests.chain.cut_connections import (
    Reader,
    after_commit,
    before_commit,
    in_copy,
    reading_processes,
)
from tests.chain.indexed_network import Network, listen, network
from tests.evm.node import Node
from tests.functions.jobs.processes import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]

STORING = b"INSERT INTO chain_contract_event"
UNWINDING = b"INSERT INTO chain_reorganisation"


@pytest.fixture(scope="module")
def reader(django_db_setup: None, django_db_blocker: object) -> Iterator[Reader]:
    with reading_processes() as results:
        yield results


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        world.mint(2)
        world.follow()
        yield world


def _read_on(world: Network, reader: Reader) -> None:
    """Another process reads the rest, when the server has noticed that the one before is gone."""

    def is_done() -> bool:
        assert reader.follow(world.network_id) == 0
        return world.cursor.number == world.node.head

    until(is_done)
    world.check()


@pytest.mark.slow
def test_processes_that_store_blocks_are_killed(world: Network, reader: Reader) -> None:
    # Many events are copied, few are parameters.
    points = ((in_copy(), 80), (before_commit(STORING), 80))
    for point, count in (*points, (before_commit(STORING), 2), (after_commit(STORING), 2)):
        for _ in range(3):
            world.mint(count)
        shown = len(world.shown())
        assert reader.follow(world.network_id, point) == signal.SIGKILL
        # What is sent is stored, and the other way round.
        assert world.told() == world.shown()
        _read_on(world, reader)
        assert len(world.shown()) == shown + 3 * count


@pytest.mark.slow
def test_processes_that_take_blocks_back_are_killed(world: Network, reader: Reader) -> None:
    points = (before_commit(UNWINDING), after_commit(UNWINDING), before_commit(STORING))
    for number, point in enumerate(points, 1):
        world.mint(2)
        world.follow()
        world.node.reorg(2, [(world.gem.request("spam", 3), 1)])
        world.node.mine(1)
        assert reader.follow(world.network_id, point) == signal.SIGKILL
        assert world.told() == world.shown()
        _read_on(world, reader)
        assert Reorganisation.objects.count() == number


@pytest.mark.slow
def test_processes_that_read_the_same_blocks_store_them_once(
    world: Network, reader: Reader
) -> None:
    with reading_processes() as other, ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            racing = [pool.submit(item.race, world.network_id) for item in (reader, other)]
            while not all(item.done() for item in racing):
                world.mint(2)
                if world.node.head % 5 == 0:
                    world.node.reorg(2, [(world.gem.request("spam", 3), 1)])
            assert [item.result() for item in racing] == [0, 0]
            world.node.mine(1)
            _read_on(world, reader)
