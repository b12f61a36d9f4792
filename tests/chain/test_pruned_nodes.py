"""Nodes that have pruned the past: what is left is indexed, what is missing is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.core.management import CommandError, call_command

from chain import doctor
from chain.core.failures import NoAnswer
from chain.indexing import coverage
from chain.indexing.history.backfill import advance, plan
from chain.indexing.history.unavailable import first_held
from chain.indexing.repair.examination import examine
from chain.models import Backfill, Blockchain, ContractEvent
from chain.networks import providers
from chain.rpc import pool
from tests.chain.backfills import (
    change,
    listen,
    network_of,
    on_chain,
    open_ranges,
    spam,
    stored,
)
from tests.evm.artefacts import Contract
from tests.evm.faults import PRUNED, prune
from tests.evm.liar import Lie, lying
from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied

pytestmark = pytest.mark.django_db(transaction=True)

any_style = pytest.mark.parametrize("style", PRUNED)
openly_or_not = pytest.mark.parametrize("style", ["with another error", "with no logs"])


@pytest.fixture
def gem(node: Node) -> Contract:
    """A contract with an event in every tenth of 150 blocks."""
    gem = node.deployed("Gem")
    for _ in range(15):
        spam(gem, 1)
        node.mine(9)
    return gem


@pytest.fixture
def proxy(node: Node) -> Iterator[Proxy]:
    with proxied(node) as proxy:
        yield proxy


def read(network_id: int) -> None:
    """Read all that can be read now."""
    pool.forget()
    Backfill.objects.update(paused_until=None)
    while advance(network_id):
        pass


def unavailable() -> list[tuple[int, int]]:
    rows = Backfill.objects.filter(unavailable=True, done_at=None)
    return [*rows.values_list("next_block", "last_block")]


def after(node: Node, height: int) -> list[tuple[int, int, str]]:
    return [place for place in on_chain(node) if place[0] >= height]


@pytest.mark.parametrize(
    ("style", "verify"), [*((style, "sample") for style in PRUNED), ("with no logs", "all")]
)
def test_what_the_provider_has_is_indexed_and_the_rest_is_shown(
    node: Node, gem: Contract, proxy: Proxy, style: str, verify: str
) -> None:
    prune(proxy, 100, style)
    network_id = network_of(node, proxy.url)
    Blockchain.objects.update(verify=verify)
    listen(gem)
    read(network_id)
    [(first, last)] = unavailable()
    assert first <= on_chain(node)[0][0]
    # Blocks without transactions before block 100 may count as available.
    assert last == max(place[0] for place in on_chain(node) if place[0] < 100) or last == 99
    assert stored() == after(node, 100)
    assert open_ranges(network_id) == [(first, last)]
    trouble = str(Backfill.objects.get(unavailable=True).trouble)
    for word in (f"{first:,} to {last:,}", "archive node", f"startBlock to {last + 1}"):
        assert word in trouble
    plan(network_id)
    assert open_ranges(network_id) == [(first, last)]


@pytest.mark.slow
@openly_or_not
def test_it_is_read_as_soon_as_a_provider_has_it(
    node: Node, gem: Contract, proxy: Proxy, style: str
) -> None:
    prune(proxy, 100, style)
    network_id = network_of(node, proxy.url)
    contract = listen(gem)
    read(network_id)
    assert stored() != on_chain(node)
    proxy.be_good()
    prune(proxy, 50, style)
    read(network_id)
    assert stored() == after(node, 50)
    [(_, last)] = unavailable()
    assert last < 50
    providers.add(network_id, "archive", node.url)
    read(network_id)
    assert stored() == on_chain(node)
    assert (unavailable(), open_ranges(network_id)) == ([], [])
    assert sum(Backfill.objects.values_list("events", flat=True)) == len(stored())
    assert coverage.covered(network_id) == {contract.address: [(0, node.head)]}


@pytest.mark.slow
def test_operators_are_shown_what_is_missing_and_what_to_do(
    node: Node, gem: Contract, proxy: Proxy, capsys: pytest.CaptureFixture[str]
) -> None:
    prune(proxy, 100, "with null")
    network_id = network_of(node, proxy.url)
    listen(gem)
    with pytest.raises(CommandError, match="No provider has some of the blocks"):
        call_command("chain_backfill", str(network_id), "--wait", "--json")
    backfills = json.loads(capsys.readouterr().out)["backfills"]
    assert [(row["from"], row["to"], row["done"], row["unavailable"]) for row in backfills] == [
        (100, node.head, True, False),
        (0, 99, False, True),
    ]
    call_command("chain_status", str(network_id))
    assert "No provider that responds has the blocks 0 to 99" in capsys.readouterr().out
    [finding] = [each for each in doctor.indexed_networks() if "no provider has" in each.text]
    assert (finding.level, finding.text) == (
        "warn",
        f"network {network_id}: no provider has all blocks from 0 to 99; events of 1 contract are"
        " missing.",
    )
    proxy.be_good()
    call_command("chain_backfill", str(network_id), "--wait")
    assert stored() == on_chain(node)


def test_a_start_block_above_what_is_missing_ends_the_trouble(
    node: Node, gem: Contract, proxy: Proxy
) -> None:
    prune(proxy, 100, "with null")
    network_id = network_of(node, proxy.url)
    contract = listen(gem)
    read(network_id)
    change(contract, start_block=100)
    plan(network_id)
    assert (unavailable(), open_ranges(network_id)) == ([], [])
    read(network_id)
    assert stored() == after(node, 100)


@any_style
def test_of_two_providers_the_one_that_has_the_past_is_used_for_it(
    node: Node, gem: Contract, proxy: Proxy, style: str
) -> None:
    prune(proxy, 100, style)
    network_id = network_of(node, proxy.url)
    providers.add(network_id, "pruned", proxy.url, weight=100)
    providers.add(network_id, "archive", node.url, weight=0)
    listen(gem)
    read(network_id)
    assert stored() == on_chain(node)
    assert open_ranges(network_id) == []
    pruned = next(member for member in pool.known_members(network_id) if member.name == "pruned")
    assert not pruned.health.is_paused


def test_contracts_without_a_start_block_are_read_from_the_first_block_that_there_is(
    node: Node, gem: Contract, proxy: Proxy
) -> None:
    prune(proxy, 100, "with no logs")
    network_id = network_of(node, proxy.url)
    listen(gem, start=None)
    listen(node.deployed("Coin"), start=None, name="Coin")
    read(network_id)
    assert stored() == after(node, 100)
    assert len(unavailable()) == 2


@pytest.mark.slow
def test_a_provider_that_has_nothing_at_all_leaves_all_of_it_to_be_read_later(
    node: Node, gem: Contract, proxy: Proxy
) -> None:
    network_id = network_of(node, proxy.url)
    listen(gem)
    prune(proxy, node.head + 1, "with no logs")
    read(network_id)
    assert stored() == []
    # Nothing is to be shown by blocks without transactions.
    assert unavailable() == [(0, on_chain(node)[-1][0])]
    proxy.be_good()
    read(network_id)
    assert stored() == on_chain(node)


def test_a_comparison_finds_what_is_missing_by_the_filters_of_the_headers(
    node: Node, gem: Contract
) -> None:
    network_id = network_of(node)
    listen(gem)
    read(network_id)
    with lying(node, Lie("drop", rate=0.5)) as liar:
        Blockchain.objects.update(rpc_endpoint=liar.proxy.url)
        pool.forget()
        ContractEvent.objects.filter(block_number__lt=100).delete()
        expected = len(on_chain(node)) - len(stored())
        by_logs = examine(network_id, 0, node.head)
        assert by_logs.counts["missing"] < expected
        report = examine(network_id, 0, node.head, by_filters=True, repairing=True)
        assert (report.counts["missing"], report.mended) == (expected, expected)
    assert stored() == on_chain(node)


@pytest.mark.slow
def test_a_comparison_names_blocks_whose_events_the_node_has_pruned(
    node: Node, gem: Contract, proxy: Proxy, capsys: pytest.CaptureFixture[str]
) -> None:
    network_id = network_of(node, proxy.url)
    listen(gem)
    read(network_id)
    ContractEvent.objects.filter(block_number__lt=100).delete()
    prune(proxy, 100, "with no logs")
    pool.forget()
    with pytest.raises(CommandError, match="lacks their receipts"):
        call_command("chain_verify", str(network_id), "--json")
    unclear = json.loads(capsys.readouterr().out)["examples"]["unclear"]
    assert unclear == [place[0] for place in on_chain(node) if place[0] < 100]
    prune(proxy, 100, "with null")
    call_command("chain_verify", str(network_id), "--from", "100", "--json")


class LateNode:
    """Breaks off when early blocks are requested."""

    def headers(self, heights: list[int]) -> list[Any]:
        if min(heights, default=100) < 100:
            raise NoAnswer("no answer: the connection failed")
        return [SimpleNamespace(transactions=[]) for _ in heights]


def test_a_response_that_does_not_arrive_says_nothing_of_the_blocks() -> None:
    with pytest.raises(NoAnswer):
        first_held(cast(Any, LateNode()), first=0, last=2000)
