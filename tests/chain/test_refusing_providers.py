"""What one provider refuses is requested in smaller parts, then from another provider, by whatever
text it is refused. What one contract does to a node doesn't stop its network."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from chain import rpc
from chain.indexing.history.backfill import advance, plan
from chain.models import Backfill, ContractEvent
from chain.rpc.pool import pool_of
from tests.chain.backfills import (
    listen,
    network_of,
    on_chain,
    open_ranges,
    register,
    spam,
    stored,
)
from tests.chain.indexed_network import Network, network
from tests.chain.indexed_network import listen as listen_at_head
from tests.chain.rpc.networks import provider
from tests.evm import faults
from tests.evm.artefacts import Contract
from tests.evm.node import Node
from tests.evm.proxy import Call, Proxy, RpcError, proxied
from tests.evm.refuser import Refusal, Refuser

pytestmark = pytest.mark.django_db(transaction=True)

PRUNED = (
    "History has been pruned for this block. To remove this limitation, order a dedicated full node"
)
TOKEN = "Archive requests require a personal token"
REFUSALS = [
    Refusal(-32701, PRUNED),
    Refusal(-32602, TOKEN),
    Refusal(-32602, TOKEN, status=403, is_of_all=True),
    Refusal(-32603, "Internal error"),
    Refusal(0, "", status=500, is_of_all=True),
    Refusal(-32000, "zelk ouri", is_of_all=True),
]


def read_history(network_id: int) -> None:
    """Read all of it, without the pauses after troubles."""
    plan(network_id)
    for _ in range(20):
        Backfill.objects.update(paused_until=None)
        advance(network_id)
        if not open_ranges(network_id):
            return
    raise AssertionError(Backfill.objects.filter(done_at=None).values_list("trouble"))


def install(proxy: Proxy, refuser: Refuser) -> Refuser:
    proxy.on_request(refuser.request)
    proxy.on_reply(refuser.reply)
    return refuser


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    with network(node) as world:
        yield world


@pytest.fixture
def second(world: Network) -> Iterator[Proxy]:
    """A healthy provider beside the network's own proxy, which is preferred to it."""
    with proxied(world.node) as proxy:
        provider(world.proxy.url, "first", world.network_id, weight=1000)
        provider(proxy.url, "second", world.network_id, weight=1)
        yield proxy


# -- Another provider ------------------------------------------------------------------------------


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_the_head_is_read_beside_a_provider_that_refuses_logs(
    world: Network, second: Proxy, refusal: Refusal
) -> None:
    listen_at_head(world)
    world.mint(2)
    world.follow()
    pool_of(world.network_id).choose_another()
    refuser = install(world.proxy, Refuser(refusal, methods=frozenset({"eth_getLogs"})))
    for _ in range(6):
        pool = pool_of(world.network_id)
        [pool._kept] = [each for each in pool.known() if each.name == "first"]
        world.mint(2)
        world.follow()
    world.check()
    # It isn't preferred any more, and operators see why.
    first = next(each for each in pool_of(world.network_id).known() if each.name == "first")
    assert first.health.is_avoided
    assert "refuses what others answer" in str(first.health.trouble)
    world.mint(2)
    before = refuser.refused
    assert rpc.attempt(world.network_id, lambda each: each.provider) == "second"
    world.follow()
    world.check()
    assert refuser.refused - before <= 3  # comparisons with it
    [health] = [each for each in rpc.health(world.network_id) if each.name == "first"]
    assert health.trouble


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_history_is_read_beside_a_provider_that_refuses_it(node: Node, refusal: Refusal) -> None:
    gem = node.deployed("Gem")
    for _ in range(12):
        spam(gem, 2)
    with ExitStack() as stack:
        first, healthy = (stack.enter_context(proxied(node)) for _ in range(2))
        network_id = network_of(node, first.url)
        provider(first.url, "first", network_id, weight=1000)
        provider(healthy.url, "healthy", network_id, weight=1)
        refuser = install(first, Refuser(refusal, lowest=10**9))
        listen(gem)
        read_history(network_id)
        assert Backfill.objects.get().trouble is None
    assert stored() == on_chain(node)
    assert refuser.refused < 30


def test_one_provider_alone_that_refuses_everything_costs_few_requests(node: Node) -> None:
    gem = node.deployed("Gem")
    node.mine(500)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        install(proxy, Refuser(Refusal(-32701, PRUNED), lowest=10**9))
        listen(gem)
        assert advance(network_id)
        assert PRUNED in str(Backfill.objects.get().trouble)
        assert proxy.calls["eth_getLogs"] < 15


# -- Fewer blocks, fewer contracts -----------------------------------------------------------------

BLOCKS, CONTRACTS = {"most_blocks": 7}, {"most_contracts": 2}
SENTENCES = [
    (-32012, "getLogs request exceeded max allowed range", BLOCKS),
    (-32602, "specify less number of addresses", CONTRACTS),
    (-32602, "exceed max addresses or topics per search position", CONTRACTS),
    (-32000, "timeout", BLOCKS),
    (-32603, "request timeout on the server", BLOCKS),
    (-32000, "access denied: upgrade your api key", BLOCKS),
    (-32000, "out of range", CONTRACTS),
    (-32000, "query requests limit per second of your plan", BLOCKS),
    (-32000, "vabsu ool", {"most_blocks": 3, "most_contracts": 1}),
]


@pytest.mark.parametrize(("code", "text", "limits"), SENTENCES)
def test_a_single_provider_with_a_limit_is_read_by_any_sentence(
    node: Node, code: int, text: str, limits: dict[str, int]
) -> None:
    gems = [node.deployed("Gem") for _ in range(5)]
    for gem in gems:
        spam(gem, 2)
        node.mine(20)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        refuser = install(proxy, Refuser(Refusal(code, text), **limits))
        for number, gem in enumerate(gems):
            listen(gem, name=f"Gem {number}")
        read_history(network_id)
        assert stored() == on_chain(node)
        # Without what is learned it would be one for each of 100 blocks and 5 contracts.
        assert refuser.refused < 50


@pytest.mark.parametrize("most_blocks", [1, 5, 12])
def test_a_limit_that_was_learned_is_not_exceeded_each_time(node: Node, most_blocks: int) -> None:
    gem = node.deployed("Gem")
    node.mine(25 * most_blocks)
    spam(gem, 1)
    chance = random.Random(most_blocks)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        refuser = install(proxy, Refuser(Refusal.drawn(chance), most_blocks=most_blocks))
        listen(gem)
        read_history(network_id)
        assert stored() == on_chain(node)
        assert refuser.refused < 12


@pytest.mark.parametrize("refusal", [REFUSALS[-1], Refusal(-1, "vaut", 500, is_of_all=True)])
def test_the_head_is_read_within_any_limit(world: Network, refusal: Refusal) -> None:
    world.node.automine(True)
    others = [world.node.deployed("Gem") for _ in range(3)]
    world.node.automine(False)
    listen_at_head(world)
    for number, other in enumerate(others):
        listen_at_head(world, other, f"Gem {number}")
    world.mint(1)
    world.follow()
    install(world.proxy, Refuser(refusal, most_blocks=2, most_contracts=3))
    for _ in range(3):
        for _ in range(9):
            world.mint(1)
        world.follow()
    world.check()


# -- Contracts -------------------------------------------------------------------------------------

HALTS = {
    "invalid opcode": "fe",
    "endless": "5b600056",
    "stack underflow": "50",
    "invalid jump": "600056",
}
WORDINGS = [
    (-32603, "EVM error InvalidOperandOOG"),
    (-32000, "zrubb: ako"),
    (-32603, "Internal error"),
    (-32015, "VM execution error."),
]


def deployed(node: Node, code: str) -> str:
    """The address of a new contract with this code."""
    size = f"{len(code) // 2:02x}"
    return node.deploy(f"0x60{size}600c60003960{size}6000f3{code}")


@pytest.mark.parametrize(
    ("halt", "wording"),
    [*((halt, None) for halt in HALTS), *(("invalid opcode", wording) for wording in WORDINGS)],
)
def test_a_contract_that_halts_does_not_stop_its_network(
    node: Node, halt: str, wording: tuple[int, str] | None
) -> None:
    gem = node.deployed("Gem")
    odd = deployed(node, HALTS[halt])
    spam(gem, 3)

    def worded(call: Call) -> Any:
        try:
            return call.forward()
        except RpcError:
            if wording is None:
                raise
            raise RpcError(*wording) from None

    with proxied(node) as proxy:
        proxy.on("eth_call", worded)
        network_id = network_of(node, proxy.url)
        register(network_id, odd, [], 0, "Odd")
        listen(gem)
        read_history(network_id)
        assert stored() == on_chain(node)
        assert not pool_of(network_id).known()[0].health.is_paused


def test_a_contract_that_no_batch_is_answered_with_stops_no_other(node: Node) -> None:
    """Some proxies fail a whole request when one of its calls fails."""
    gems = [node.deployed("Gem") for _ in range(3)]
    odd = deployed(node, HALTS["invalid opcode"])
    for gem in gems:
        spam(gem, 2)

    def fail_all(calls: Sequence[dict[str, Any]]) -> None:
        if any(call["method"] == "eth_call" and call["params"][0]["to"] == odd for call in calls):
            raise faults.HttpAnswer(502, b"<html>Bad Gateway</html>")

    with proxied(node) as proxy:
        proxy.on_request(fail_all)
        network_id = network_of(node, proxy.url)
        register(network_id, odd, [], 0, "Odd")
        for number, gem in enumerate(gems):
            listen(gem, name=f"Gem {number}")
        read_history(network_id)
        assert stored() == on_chain(node)


def test_events_of_a_diamond_are_read_beside_a_provider_that_refuses_calls(node: Node) -> None:
    """The other provider's answer is used, not none."""
    gem = node.deployed("Gem")
    implementation = node.deployed("Gem")
    code = f"363d3d373d3d3d363d73{implementation.address[2:].lower()}5af43d82803e903d91602b57fd5bf3"
    clone = Contract(node, deployed(node, code), gem.abi)
    node.mined(clone.transact("spam", 2))
    with ExitStack() as stack:
        first, healthy = (stack.enter_context(proxied(node)) for _ in range(2))
        network_id = network_of(node, first.url)
        provider(first.url, "first", network_id, weight=1000)
        provider(healthy.url, "healthy", network_id, weight=1)
        refusing = frozenset({"eth_call", "eth_getCode"})
        install(first, Refuser(Refusal(-32000, "opaw mij"), methods=refusing))
        register(network_id, implementation.address, gem.abi, 0, "Implementation")
        register(network_id, clone.address, [], 0, "Clone")
        read_history(network_id)
    events = ContractEvent.objects.filter(address__iexact=clone.address)
    assert {*events.values_list("event_name", flat=True)} == {"Transfer"}
