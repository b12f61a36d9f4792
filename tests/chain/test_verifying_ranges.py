"""One provider lies about final blocks, which are read by ranges: in backfills and after pauses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chain.indexing.head import indexer
from chain.indexing.history.backfill import advance
from chain.indexing.repair.audits import audit
from chain.indexing.verification import ranges
from chain.models import Backfill, Blockchain, Recheck
from tests.chain.backfills import listen as listen_to
from tests.chain.backfills import network_of
from tests.chain.indexed_network import Network
from tests.chain.lying_network import (
    Event,
    contents,
    events_on_chain,
    events_shown,
    lied_to,
    truth,
)
from tests.evm.artefacts import Contract
from tests.evm.liar import Kind, Liar, Lie, lying
from tests.evm.node import Node

pytestmark = pytest.mark.django_db(transaction=True)

ABOUT_LOGS: tuple[Kind, ...] = ("drop", "invent", "change", "retopic", "reorder", "truncate")
BLOCKS = 150


@pytest.fixture
def gem(node: Node) -> Contract:
    """A contract with events in every other of many blocks."""
    return _with_past(node, ("spamMinted", 1, 0), ("spam", 2))


def _with_past(node: Node, *calls: tuple[Any, ...]) -> Contract:
    gem = node.deployed("Gem")
    node.automine(False)
    _mine(gem, BLOCKS // 2, *calls)
    return gem


def _mine(gem: Contract, count: int, *calls: tuple[Any, ...]) -> None:
    """So many blocks in which these methods are called, an empty one after each."""
    for _ in range(count):
        for call in calls:
            gem.transact(*call, gas=5_000_000)
        gem.node.mine(2)


@pytest.fixture
def liar(node: Node) -> Iterator[Liar]:
    with lying(node) as liar:
        yield liar


def on_chain(gem: Contract) -> set[Event]:
    return events_on_chain(gem, 0, gem.node.head)


def backfilled(node: Node, gem: Contract, liar: Liar, verify: str) -> int:
    network_id = network_of(node, liar.proxy.url)
    Blockchain.objects.update(verify=verify)
    listen_to(gem)
    advance(network_id)
    return network_id


@pytest.mark.parametrize("kind", ABOUT_LOGS)
def test_where_every_block_is_checked_a_backfill_stores_what_the_receipts_have(
    node: Node, gem: Contract, liar: Liar, kind: Kind
) -> None:
    liar.lie(Lie(kind, rate=1 if kind == "truncate" else 0.3))
    backfilled(node, gem, liar, "all")
    assert liar.lies_about(kind)
    assert Backfill.objects.get().done_at is not None
    assert events_shown(node.chain_id) == on_chain(gem)


@pytest.mark.slow
def test_where_every_block_is_checked_a_backfill_waits_for_receipts_that_are_true(
    node: Node, gem: Contract, liar: Liar
) -> None:
    liar.lie(Lie("change", rate=0.3, in_receipts=True))
    network_id = backfilled(node, gem, liar, "all")
    row = Backfill.objects.get()
    assert row.done_at is None
    assert "receipts" in str(row.trouble)
    assert events_shown(node.chain_id) <= on_chain(gem)
    liar.be_honest()
    Backfill.objects.update(paused_until=None)
    advance(network_id)
    assert events_shown(node.chain_id) == on_chain(gem)


@pytest.mark.slow
def test_a_sample_that_shows_a_lie_has_the_range_and_what_was_read_before_it_checked(
    node: Node, liar: Liar
) -> None:
    """The first ranges pass: what is wrong with them is in their receipts, and in no filter."""
    gem = _with_past(node, ("spamMinted", 1, 0))
    _mine(gem, 20, ("spam", 2))
    liar.lie(Lie("change", last=60, in_receipts=True), Lie("retopic"))
    network_id = backfilled(node, gem, liar, "sample")
    assert Backfill.objects.get().done_at is not None
    assert events_shown(node.chain_id) != on_chain(gem)
    [again] = Recheck.objects.filter(kind=Recheck.HISTORY)
    assert again.next_block == 0
    liar.lie(Lie("change"), Lie("retopic"))
    audit(network_id)
    assert events_shown(node.chain_id) == on_chain(gem)
    assert not Recheck.objects.exists()


def test_a_sample_of_final_blocks_that_shows_a_lie_has_recent_blocks_audited(node: Node) -> None:
    with lied_to(node) as (world, liar):
        audit(world.network_id)
        for _ in range(3):
            world.mint(2)
        node.mine(100)
        liar.lie(Lie("retopic"))
        world.follow()
        assert liar.lies_about("retopic")
        [again] = Recheck.objects.all()
        assert again.kind == Recheck.RECENT
        assert again.next_block <= again.last_block


def test_history_of_an_honest_node_costs_three_requests_for_each_range_more(
    node: Node, gem: Contract, liar: Liar
) -> None:
    backfilled(node, gem, liar, "sample")
    assert liar.proxy.requests <= 3 * 5 + 10
    assert events_shown(node.chain_id) == on_chain(gem)


@pytest.mark.parametrize("verify", ["sample", "all"])
@pytest.mark.parametrize("kind", ["drop", "invent", "retopic"])
@pytest.mark.slow
def test_after_a_pause_nothing_wrong_is_read_of_final_blocks(
    node: Node, settings: Any, kind: Kind, verify: str
) -> None:
    settings.SERVICE = {**settings.SERVICE, "VERIFY_PERCENT": 100}
    with lied_to(node, verify=verify) as (world, liar):
        _pass_much_time(world)
        liar.lie(Lie(kind))
        while world.cursor.number != node.head:
            world.follow()
            assert world.cursor.trouble is None
        assert liar.lies_about(kind)
        assert contents(world) == truth(world)


def _pass_much_time(world: Network) -> None:
    for _ in range(5):
        world.node.mine(100)
        world.mint(2)
    world.node.mine(100)
    indexer.forget()


def test_a_process_that_restarts_samples_again() -> None:
    ranges._wrong[1] = range(5)
    indexer.forget()
    assert not ranges._wrong
