"""What nodes do wrong while a network is read: nothing of it is stored, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chain.core.failures import Moved
from chain.indexing import head
from chain.indexing.head import indexer
from chain.models import ContractEvent, Provider, Reorganisation
from chain.networks import status
from chain.rpc import pool
from tests.chain.indexed_network import Network, listen, network
from tests.chain.rpc.networks import provider
from tests.evm import faults
from tests.evm.faults import after, altered, before, gives
from tests.evm.node import Node
from tests.evm.proxy import Call, Proxy, proxied
from tests.threads import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network read up to its head, with events in the last blocks."""
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        world.mint(2)
        node.mine(2)
        world.mint(1)
        world.follow()
        world.check()
        yield world


# -- Changes while it is read ---------------------------------------------------------------------

METHODS = ("eth_getBlockByNumber", "eth_getLogs")


@pytest.mark.parametrize("moment", [before, after], ids=["before", "after"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("new_blocks", [1, 5])
def test_a_reorganisation_between_two_answers_leaves_nothing_behind(
    world: Network, moment: Callable[..., Any], method: str, new_blocks: int
) -> None:
    for _ in range(new_blocks):
        world.mint(2)
    requests = [(world.gem.request("spam", 3), 0)]
    world.proxy.on(method, moment(lambda: world.node.reorg(new_blocks, requests)), times=1)
    world.follow()
    world.node.mine(1)
    world.follow()
    world.check()


def test_a_chain_that_changes_all_the_time_is_not_followed_in_a_busy_loop(world: Network) -> None:
    world.mint(2)
    hook = before(lambda: world.node.reorg(2, [(world.gem.request("spam", 1), 0)]))
    world.proxy.on("eth_getLogs", hook)
    assert world.requests() < 40
    assert world.cursor.trouble
    world.proxy.be_good()
    world.node.mine(1)
    world.follow()
    world.check()
    assert world.cursor.trouble is None


# -- A node that is behind ------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 3, 5])
def test_a_node_that_is_behind_takes_nothing_back(world: Network, blocks: int) -> None:
    was = world.cursor
    faults.stay_at(world.proxy, world.node.head - blocks)
    world.mint(1)
    now = world.follow()
    assert (now.number, now.hash, now.outbox) == (was.number, was.hash, was.outbox)
    assert "behind" in str(now.trouble)
    assert not Reorganisation.objects.exists()
    assert not ContractEvent.objects.filter(canonical=False).exists()
    world.proxy.be_good()
    world.follow()
    world.check()
    assert world.cursor.trouble is None


# -- Blocks that are none -------------------------------------------------------------------------

NO_BLOCKS: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda block: None,
    "a text": lambda block: "block",
    "a list": lambda block: [block],
    "without a hash": lambda block: {**block, "hash": None},
    "without a number": lambda block: {**block, "number": None},
    "with another number": lambda block: {**block, "number": hex(int(block["number"], 16) + 1)},
    "with a number that is none": lambda block: {**block, "number": "0xlatest"},
    "with a number that nothing holds": lambda block: {**block, "number": hex(2**70)},
    "with a time that nothing holds": lambda block: {**block, "timestamp": hex(2**63)},
    "with another parent": lambda block: {**block, "parentHash": block["hash"]},
}


@pytest.mark.parametrize("wrong", NO_BLOCKS)
@pytest.mark.parametrize("new_blocks", [1, 3])
def test_what_is_no_block_is_not_stored(world: Network, wrong: str, new_blocks: int) -> None:
    was = world.cursor
    for _ in range(new_blocks):
        world.mint(1)
    new = {"latest", *(hex(was.number + item) for item in range(1, new_blocks + 1))}
    hook = altered(lambda block: block and NO_BLOCKS[wrong](block))
    world.proxy.on("eth_getBlockByNumber", faults.only_if(lambda c: c.params[0] in new, hook))
    world.follow()
    assert (world.cursor.number, world.cursor.hash) == (was.number, was.hash)
    assert world.cursor.trouble
    world.proxy.be_good()
    world.follow()
    world.check()


# -- Logs -----------------------------------------------------------------------------------------

WRONG = {
    "of no block": faults.lying_about_blocks(),
    "taken back": faults.taken_back(),
    "another at its place": altered(
        lambda logs: [*logs, *({**log, "data": "0x01"} for log in logs[:1])]
    ),
    "without a number": altered(lambda logs: [{**log, "logIndex": "first"} for log in logs]),
    **{
        f"with {value!r} for its {name}": altered(
            lambda logs, name=name, value=value: [{**log, name: value} for log in logs]
        )
        for name, value in (
            ("logIndex", hex(2**63)),
            ("transactionIndex", "first"),
            ("transactionIndex", hex(2**63)),
            ("transactionHash", r"\N"),
            ("transactionHash", "a\tb"),
            ("transactionHash", "\0" * 66),
            ("blockHash", "0xhash"),
        )
    },
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("new_blocks", [1, 4])
def test_wrong_logs_are_not_stored(world: Network, wrong: str, new_blocks: int) -> None:
    was = world.cursor
    for _ in range(new_blocks):
        world.mint(1)
    world.proxy.on("eth_getLogs", WRONG[wrong])
    world.follow()
    assert world.cursor.number == was.number
    assert world.cursor.trouble
    world.proxy.be_good()
    world.follow()
    world.check()


@pytest.mark.parametrize("new_blocks", [1, 4])
def test_logs_in_disorder_or_twice_are_put_right(world: Network, new_blocks: int) -> None:
    for _ in range(new_blocks):
        world.mint(3)
    world.proxy.on("eth_getLogs", _all_wrong)
    world.follow()
    world.check()


def _all_wrong(call: Call) -> Any:
    logs = call.forward()
    return [*logs[::-1], *logs]


def test_logs_that_a_range_lacks_are_requested_by_block(world: Network) -> None:
    """The index of logs is behind the blocks for a moment."""
    for _ in range(4):
        world.mint(1)
    world.proxy.on("eth_getLogs", gives([]), times=1)
    world.follow()
    world.check()


@pytest.mark.parametrize("new_blocks", [1, 3])
def test_logs_that_only_the_whole_block_shows_are_stored(world: Network, new_blocks: int) -> None:
    """A node that finds nothing by address; all logs of the block make up the header's filter."""
    for _ in range(new_blocks):
        world.mint(2)
    world.proxy.on("eth_getLogs", faults.only_if(_is_by_address, gives([])))
    world.follow()
    world.check()


def _is_by_address(call: Call) -> bool:
    return "address" in call.params[0]


# -- Limits of providers --------------------------------------------------------------------------


@pytest.mark.parametrize("style", faults.RANGE_LIMITS)
def test_ranges_become_as_narrow_as_the_provider_wants(world: Network, style: str) -> None:
    for _ in range(5):
        world.node.mine(9)
        world.mint(2)
    world.proxy.on("eth_getLogs", faults.range_limit(style, 10))
    assert world.requests() <= 2 + 50 // 5 + 8
    world.check()
    for _ in range(5):
        world.node.mine(9)
        world.mint(2)
    assert world.requests() <= 2 + 50 // 5
    world.check()


@pytest.mark.parametrize(
    "limit",
    [faults.range_limit("infura", 100), faults.result_limit("infura", 30)],
    ids=["blocks", "results"],
)
def test_final_blocks_are_read_in_steps_that_the_provider_allows(
    world: Network, limit: Any
) -> None:
    for _ in range(4):
        world.node.mine(80)
        world.mint(20)
    world.node.mine(80)
    head.indexer.forget()
    world.proxy.on("eth_getLogs", limit)
    assert world.requests() < 60
    world.check()


@pytest.mark.parametrize("new_blocks", [1, 3])
def test_a_block_with_too_many_logs_is_read_by_contract(world: Network, new_blocks: int) -> None:
    world.node.automine(True)
    other = world.node.deployed("Gem")
    world.node.automine(False)
    world.follow()
    listen(world, other, "Other")
    for _ in range(new_blocks):
        other.transact("spam", 2)
        world.mint(3)
    world.proxy.on("eth_getLogs", _one_contract_at_a_time)
    world.follow()
    assert world.cursor.number == world.node.head
    assert len(world.shown()) == 3 + 5 * new_blocks


def _one_contract_at_a_time(call: Call) -> Any:
    if len(call.params[0].get("address", [])) > 1:
        raise faults.RESULT_LIMITS["infura"](0, 1, 10_000)
    return call.forward()


def test_a_node_that_knows_no_logs_by_block_is_queried_for_ranges(world: Network) -> None:
    by_hash = faults.fails(-32602, "invalid argument 0: json: unknown field blockHash")
    world.proxy.on("eth_getLogs", faults.only_if(_is_by_hash, by_hash))
    world.mint(2)
    world.follow()
    world.check()


def _is_by_hash(call: Call) -> bool:
    return "blockHash" in call.params[0]


# -- Several at once ------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_workers_who_read_the_same_blocks_store_them_once(node: Node) -> None:
    """Past the lock that spares them the work: ``step`` takes none."""
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        for round_ in range(3):
            for _ in range(3):
                world.mint(2)
            outcomes = at_once([lambda: _steps(world.network_id)] * 4)
            assert sum(outcomes) >= 1, round_
            world.check()
            node.reorg(2, [(world.gem.request("spam", 3), 0)])
            at_once([lambda: _steps(world.network_id)] * 4)
            world.follow()
            world.check()
        assert Reorganisation.objects.count() == 3


def _steps(network_id: int) -> int:
    """How many steps have come through, of as many as it takes."""
    done = 0
    for _ in range(10):
        try:
            outcome = head.step(network_id)
        except (head.Elsewhere, Moved):
            continue
        done += 1
        if outcome is head.Outcome.DONE:
            break
    return done


# -- Two providers --------------------------------------------------------------------------------


@pytest.fixture
def second_provider(world: Network) -> Iterator[Proxy]:
    """Another provider of the network; requests go to the network's own first."""
    with proxied(world.node) as other:
        provider(world.proxy.url, "first", world.network_id, weight=10)
        provider(other.url, "second", world.network_id, weight=0)
        yield other


@pytest.mark.parametrize("liar", ["first", "second"])
@pytest.mark.parametrize("new_blocks", [1, 3])
def test_of_what_two_providers_disagree_on_nothing_is_stored(
    world: Network, second_provider: Proxy, liar: str, new_blocks: int
) -> None:
    """Where nothing proves one of them right: receipts have no hashes of transactions."""
    was = world.cursor
    for _ in range(new_blocks):
        world.mint(2)
    lying = world.proxy if liar == "first" else second_provider
    lying.on("eth_getLogs", altered(_of_other_transactions))
    world.follow()
    assert world.cursor.number == was.number
    assert "differ" in str(world.cursor.trouble)
    assert not ContractEvent.objects.filter(block_number__gt=was.number).exists()
    lying.be_good()
    world.follow()
    world.check()


def _of_other_transactions(logs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**log, "transactionHash": "0x" + "77" * 32} for log in logs]


def test_the_lower_head_counts(world: Network, second_provider: Proxy) -> None:
    world.mint(1)
    faults.stay_at(second_provider, world.node.head)
    world.mint(1)
    world.mint(1)
    world.follow()
    assert world.cursor.number == world.node.head - 2
    second_provider.be_good()
    world.follow()
    world.check()


def test_one_of_several_alone_is_read_and_makes_nothing_final(
    world: Network, second_provider: Proxy
) -> None:
    """So what it has said can be taken back when the others have another chain."""
    was = world.cursor
    second_provider.refuse()
    world.node.mine(200)
    indexer.forget()
    for _ in range(3):
        world.follow()
    assert world.cursor.number == world.node.head
    assert (world.cursor.finalized, world.cursor.safe) == (was.finalized, was.safe)
    [item] = status.networks(world.network_id)
    assert item["alone"] == "first"
    second_provider.accept()
    Provider.objects.update(paused_until=None)
    pool.forget()
    world.node.mine(1)
    world.follow()
    indexer.forget()
    world.follow()
    assert world.cursor.finalized == world.node.head - 64
    [item] = status.networks(world.network_id)
    assert item["alone"] is None


@pytest.mark.slow
def test_after_a_long_pause_what_two_providers_call_final_is_read_in_large_ranges(
    world: Network, second_provider: Proxy
) -> None:
    world.node.mine(3000)
    indexer.forget()
    pool.forget()
    requests = world.requests()
    assert requests + second_provider.requests < 30, "not by 64 blocks each"
    assert world.cursor.finalized == world.node.head - 64
    world.check()


def test_a_reorganisation_that_one_provider_alone_has_seen_waits(node: Node) -> None:
    """The other one still has the old blocks."""
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        world.mint(2)
        world.follow()
        shown = world.shown()
        old = node.block()
        node.rollback(1)
        node.mine(2)
        with proxied(node) as other:
            provider(world.proxy.url, "first", world.network_id, weight=10)
            provider(other.url, "second", world.network_id, weight=0)
            height = old["number"]
            other.on(
                "eth_getBlockByNumber",
                lambda call: old if call.params[0] in ("latest", height) else call.forward(),
            )
            world.follow()
            assert world.shown() == shown
            assert not Reorganisation.objects.exists()
            other.be_good()
            world.follow()
            world.check()
            assert Reorganisation.objects.count() == 1
