"""A node that is wrong for a while halts no network for longer than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from io import StringIO
from random import Random
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections
from django.utils import timezone

from chain import rpc
from chain.indexing import head as following
from chain.indexing.head import halts
from chain.models import Block, Blockchain, Reorganisation
from chain.networks import status
from tests.chain.indexed_network import Network, let_a_minute_pass, listen, network
from tests.chain.rpc.networks import provider
from tests.evm.liar import Liar, Lie, lying
from tests.evm.node import Node, running_node
from tests.evm.proxy import proxied

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network read up to its head, with final blocks."""
    with network(node) as world:
        listen(world)
        world.follow()
        for _ in range(4):
            node.mine(19)
            world.mint(2)
        world.follow()
        following.indexer.forget()
        world.follow()
        world.check()
        yield world


@pytest.fixture
def liar(world: Network) -> Liar:
    """Its provider, which lies on demand."""
    return Liar(world.proxy, seed=7)


def in_another_process(function: Callable[[int], Any], network_id: int) -> Any:
    """Call a function with a database connection of its own."""
    try:
        return function(network_id)
    finally:
        connections.close_all()


def test_a_node_with_another_chain_halts_until_it_is_right_again(
    world: Network, liar: Liar
) -> None:
    liar.lie(Lie("forge"))
    halted = world.follow()
    assert halted.halted is not None
    liar.be_honest()
    world.mint(3)
    assert world.requests() == 0  # not before a minute is over
    let_a_minute_pass()
    assert world.follow().halted is None
    assert not Reorganisation.objects.exists()
    world.check()


def test_as_long_as_it_is_wrong_the_network_stays_halted(world: Network, liar: Liar) -> None:
    liar.lie(Lie("forge"))
    world.follow()
    for _ in range(3):
        let_a_minute_pass()
        assert world.follow().halted is not None
        compared = world.cursor.halt_checked_at
        assert compared is not None
        assert compared > timezone.now() - timedelta(seconds=50)
        assert world.requests() == 0


def test_one_of_several_providers_suffices(world: Network) -> None:
    with lying(world.node, Lie("forge", first=5)) as liar:
        provider(liar.proxy.url, "wrong", world.network_id)
        assert world.follow().halted is not None
        provider(world.proxy.url, "right", world.network_id)
        world.mint(1)
        let_a_minute_pass()
        assert world.follow().halted is None
        world.check()


@pytest.mark.parametrize("first", ["right", "wrong"])
def test_a_wrong_provider_does_not_hold_up_the_right_one(world: Network, first: str) -> None:
    """Whichever of them is used first."""
    weights = {"right": 1, "wrong": 1} | {first: 30_000}
    with lying(world.node, Lie("forge", first=5)) as liar:
        provider(liar.proxy.url, "wrong", world.network_id, weight=weights["wrong"])
        provider(world.proxy.url, "right", world.network_id, weight=weights["right"])
        for _ in range(3):
            world.mint(1)
            let_a_minute_pass()
            assert world.follow().halted is None
            world.check()
        [wrong] = [item for item in rpc.health(world.network_id) if item.name == "wrong"]
        assert "another final block" in str(wrong.trouble)


def test_a_response_that_is_wrong_once_halts_nothing(world: Network, liar: Liar) -> None:
    """The provider is compared again before."""
    world.mint(1)
    wrong = iter([True])
    liar.proxy.on_request(lambda calls: liar.lie(*[Lie("forge")] if next(wrong, False) else []))
    assert world.follow().halted is None
    assert liar.lies_about()
    world.follow()
    world.check()


@pytest.mark.django_db(transaction=True)
def test_processes_compare_once_a_minute_together(world: Network, liar: Liar) -> None:
    liar.lie(Lie("forge"))
    world.follow()
    liar.be_honest()
    let_a_minute_pass()
    with ThreadPoolExecutor(4) as threads:
        review = partial(in_another_process, halts.review_halted)
        resumed = [*threads.map(review, [world.network_id] * 4)]
    assert sorted(resumed) == [False, False, False, True]
    assert world.cursor.halted is None


@pytest.mark.django_db(transaction=True)
def test_a_decision_of_an_operator_in_between_stands(world: Network, liar: Liar) -> None:
    """The network was unwound while its provider was compared with what was stored before."""
    liar.lie(Lie("forge"))
    world.follow()
    liar.be_honest()
    let_a_minute_pass()
    below = (world.cursor.finalized or 0) - 1
    resume = partial(following.resume, unwind_to=below)
    liar.proxy.on_request(lambda calls: in_another_process(resume, world.network_id), times=1)
    assert not halts.review_halted(world.network_id)
    assert world.cursor.number == below


def test_nothing_begins_with_a_node_of_another_network(node: Node) -> None:
    """Its chain id was right a moment ago: the address leads elsewhere since."""
    with network(node) as world:
        liar = Liar(world.proxy)
        rpc.attempt(world.network_id, lambda node: node.header("latest"))
        liar.lie(Lie("forge"), Lie("other chain", chain_id=5))
        assert world.follow().number is None
        assert world.cursor.trouble == "answers for network 5, not for 31337"
        liar.be_honest()
        let_a_minute_pass()
        assert world.follow().number is not None


def test_a_reorganisation_above_the_final_block_is_no_obstacle(world: Network, liar: Liar) -> None:
    liar.lie(Lie("forge"))
    world.follow()
    liar.be_honest()
    world.node.reorg(5, [(world.gem.request("spam", 2), 1)])
    let_a_minute_pass()
    assert world.follow().halted is None
    world.check()


def test_a_node_of_another_network_at_the_address_neither_halts_nor_is_read(
    world: Network,
) -> None:
    """The address leads to another machine: the connection stays, the chain id was requested."""
    address = world.proxy.node_url
    with running_node(5) as other:
        other.mine(world.node.head + 10)
        world.proxy.node_url = other.url
        cursor = world.follow()
        assert cursor.halted is None
        assert cursor.trouble == "answers for network 5, not for 31337"
    world.proxy.node_url = address
    world.mint(2)
    let_a_minute_pass()
    world.follow()
    assert world.cursor.trouble is None
    assert not Reorganisation.objects.exists()
    world.check()


def test_another_chain_id_makes_no_reorganisation_either(world: Network, liar: Liar) -> None:
    before = world.shown()
    liar.lie(Lie("forge", first=world.node.head - 3), Lie("other chain", chain_id=5))
    assert world.follow().halted is None
    assert world.shown() == before
    assert not Reorganisation.objects.exists()


def test_a_reorganisation_below_the_final_block_is_left_to_the_command_that_it_names(
    world: Network,
) -> None:
    fork = world.node.head - 66
    world.node.reorg(66, [(world.gem.request("spam", 3), 10)])
    world.node.mine(1)
    halted = world.follow()
    assert f"chain_resume {world.network_id} --unwind-to {fork}." in str(halted.halted)
    let_a_minute_pass()
    assert world.follow().halted == halted.halted
    call_command("chain_resume", str(world.network_id), "--unwind-to", str(fork), stdout=StringIO())
    assert world.follow().halted is None
    world.check()


def test_a_chain_that_was_started_from_scratch_is_left_to_the_command_that_it_names(
    world: Network,
) -> None:
    with running_node(world.network_id) as other:
        other.mine(world.node.head + 5)
        Blockchain.objects.update(rpc_endpoint=other.url)
        halted = world.follow()
        assert f"chain_resume {world.network_id} --from-scratch" in str(halted.halted)
        let_a_minute_pass()
        assert world.follow().halted == halted.halted
        call_command("chain_resume", str(world.network_id), "--from-scratch", stdout=StringIO())
        assert world.follow().halted is None
        assert world.cursor.hash == other.block(world.cursor.number)["hash"]


def test_the_status_shows_the_command_and_the_last_comparison(world: Network, liar: Liar) -> None:
    liar.lie(Lie("forge", first=1))
    world.follow()
    [shown] = status.networks(world.network_id)
    assert shown["haltCheckedAt"] is not None
    printed = StringIO()
    call_command("chain_status", str(world.network_id), stdout=printed)
    assert "reading resumes within a minute" in printed.getvalue()
    assert "providers last compared at" in printed.getvalue()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.slow
def test_nodes_that_lie_at_random_leave_no_trace_when_they_are_right_again(
    world: Network, seed: int
) -> None:
    """With one provider, or with another one that lies as well."""
    random = Random(seed)
    liars = [Liar(world.proxy, seed)]
    with proxied(world.node) as second:
        if seed % 2:
            provider(world.proxy.url, "first", world.network_id)
            provider(second.url, "second", world.network_id)
            liars.append(Liar(second, seed + 100))
        for _ in range(6):
            final = stored_up_to(world.cursor.finalized or 0)
            for liar in liars:
                lie_at_random(liar, random, world.node.head)
            world.follow()
            if random.random() < 0.5:
                world.mint(random.randint(1, 3))
                let_a_minute_pass()
                world.follow()
            assert final <= stored_up_to(world.node.head)
            for liar in liars:
                liar.proxy.on_request(lambda calls: None)
                liar.be_honest()
            let_a_minute_pass()
            world.follow()
            assert world.cursor.halted is None
        world.follow()
        world.check()
        assert liars[0].lies_about()


def stored_up_to(height: int) -> set[tuple[int, str]]:
    blocks = Block.objects.filter(canonical=True, number__lte=height)
    return {*blocks.values_list("number", "hash")}


def lie_at_random(liar: Liar, random: Random, head: int) -> None:
    """Lie about the chain: about its id, all of its blocks, or the latest ones; in all responses,
    or in some, as a load balancer does of which one machine is of another chain."""
    first = random.choice([0, 1, head // 2, head - 5, head])
    lies = [
        random.choice(
            [
                Lie("forge", first=first),
                Lie("wrong hash", first=first),
                Lie("wrong hash", rate=0.5, first=first),
                Lie("wrong hash", rate=0.5, first=first, is_consistent=False),
            ]
        )
    ]
    if random.random() < 0.4:
        lies.append(Lie("other chain", chain_id=random.choice([1, 5])))
    share = random.choice([1.0, 0.8, 0.3])

    def balance(calls: object) -> None:
        liar.lie(*lies if random.random() < share else ())

    liar.proxy.on_request(balance)
