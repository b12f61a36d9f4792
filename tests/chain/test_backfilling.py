"""A contract's history is indexed automatically, each event once."""

from __future__ import annotations

import threading
from time import monotonic, sleep
from typing import Any

import pytest
from django.db import connections

from chain.indexing.history.backfill import advance, plan
from chain.models import Backfill, ContractEvent, Cursor, OutboxEntry
from chain.networks import providers
from chain.rpc import pool
from tests.chain.backfills import (
    change,
    listen,
    network_of,
    not_final_above,
    on_chain,
    open_ranges,
    spam,
    stored,
)
from tests.evm.faults import fails, range_limit, result_limit
from tests.evm.node import Node
from tests.evm.proxy import Call, HttpAnswer, proxied
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_contract_that_is_added_later_is_backfilled(node: Node) -> None:
    gem = node.deployed("Gem")
    for _ in range(5):
        spam(gem, 20)
    network_id = network_of(node)
    listen(gem)
    plan(network_id)
    assert open_ranges(network_id) == [(0, node.head)]
    assert advance(network_id)
    assert stored() == on_chain(node)
    assert len(stored()) == 100
    row = Backfill.objects.get()
    assert (row.events, row.next_block) == (100, node.head + 1)
    assert row.done_at is not None
    assert not OutboxEntry.objects.exists()
    plan(network_id)
    assert open_ranges(network_id) == []
    assert not advance(network_id)


def test_what_was_read_before_is_not_read_again(node: Node) -> None:
    gem = node.deployed("Gem")
    spam(gem, 3)
    middle = node.head
    spam(gem, 4)
    network_id = network_of(node)
    contract = listen(gem, start=middle + 1)
    advance(network_id)
    assert len(stored()) == 4
    change(contract, start_block=2)
    plan(network_id)
    assert open_ranges(network_id) == [(2, middle)]
    advance(network_id)
    assert stored() == on_chain(node)
    change(contract, start_block=middle)
    plan(network_id)
    assert open_ranges(network_id) == []


def test_while_listening_is_off_nothing_is_read_and_the_gap_is_planned_afterwards(
    node: Node,
) -> None:
    gem = node.deployed("Gem")
    spam(gem, 3)
    network_id = network_of(node)
    contract = listen(gem)
    plan(network_id)
    change(contract, listening=False)
    advance(network_id)
    assert (stored(), open_ranges(network_id)) == ([], [])
    change(contract, listening=True)
    advance(network_id)
    assert stored() == on_chain(node)

    change(contract, listening=False)
    plan(network_id)
    off = node.head
    spam(gem, 2)
    on = node.mine(5)
    Cursor.objects.update(number=on, finalized=on)
    change(contract, listening=True)
    plan(network_id)
    assert open_ranges(network_id) == [(off + 1, on)]
    advance(network_id)
    assert stored() == on_chain(node)


def test_a_contract_that_is_removed_is_not_read_any_more(node: Node) -> None:
    gem = node.deployed("Gem")
    spam(gem, 3)
    network_id = network_of(node)
    contract = listen(gem)
    plan(network_id)
    contract.delete()
    change(contract)
    advance(network_id)
    assert (stored(), open_ranges(network_id)) == ([], [])


def test_without_a_start_block_reading_begins_where_the_contract_was_made(node: Node) -> None:
    node.mine(200)
    gem = node.deployed("Gem")
    made = node.head
    spam(gem, 3)
    node.mine(100)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        listen(gem, start=None)
        plan(network_id)
        assert open_ranges(network_id) == [(0, node.head)]
        advance(network_id)
        # Three times seven heights, and the last, find one among 300.
        assert proxy.calls["eth_getCode"] <= 22
        assert proxy.calls["eth_getLogs"] <= 2
    assert stored() == on_chain(node)
    assert made > 200
    assert open_ranges(network_id) == []


@pytest.mark.slow
def test_many_contracts_are_sought_and_read_together(node: Node) -> None:
    gems = []
    for _ in range(20):
        gems.append(node.deployed("Gem"))
        spam(gems[-1], 1)
        node.mine(5)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        for number, gem in enumerate(gems):
            listen(gem, start=None, name=f"Gem {number}")
        while advance(network_id) or open_ranges(network_id):
            pass
        assert proxy.requests < 4 * len(gems)  # 12 for each of them alone
    assert stored() == on_chain(node)


def test_contracts_are_sought_in_smaller_parts_if_that_takes_a_provider_too_long(
    node: Node,
) -> None:
    gems = [node.deployed("Gem") for _ in range(5)]
    for gem in gems:
        spam(gem, 1)
    batches: list[int] = []

    def is_too_slow(calls: list[dict[str, Any]]) -> None:
        if calls[0]["method"] == "eth_getCode":
            batches.append(len({call["params"][0] for call in calls}))
            if batches[-1] > 2:
                pool.forget()  # so that the provider isn't left alone for it
                raise HttpAnswer(504)

    with proxied(node) as proxy:
        proxy.on_request(is_too_slow)
        network_id = network_of(node, proxy.url)
        for number, gem in enumerate(gems):
            listen(gem, start=None, name=f"Gem {number}")
        while advance(network_id):
            pass
    assert stored() == on_chain(node)
    assert (max(batches), min(batches)) == (5, 1)


def test_a_node_that_forgets_the_past_is_queried_for_all_logs(node: Node) -> None:
    gem = node.deployed("Gem")
    spam(gem, 3)
    with proxied(node) as proxy:
        proxy.on("eth_getCode", fails(-32000, "missing trie node"))
        network_id = network_of(node, proxy.url)
        listen(gem, start=None)
        advance(network_id)
    assert stored() == on_chain(node)


def test_blocks_that_are_not_final_are_read_by_their_hashes(node: Node) -> None:
    gem = node.deployed("Gem")
    for _ in range(6):
        spam(gem, 2)
    observed: list[dict[str, Any]] = []

    def note(call: Call) -> Any:
        observed.append(call.params[0])
        return call.forward()

    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        not_final_above(network_id, node, node.head - 3)
        listen(gem)
        proxy.on("eth_getLogs", note)
        advance(network_id)
    newest = [node.block(node.head - back)["hash"] for back in (2, 1, 0)]
    assert [item.get("blockHash") for item in observed] == [None, *newest]
    assert stored() == on_chain(node)
    assert open_ranges(network_id) == []


def test_the_past_of_a_proxy_is_read_by_the_code_that_it_ran(node: Node) -> None:
    first, second = node.deployed("BoxV1"), node.deployed("BoxV2")
    box = node.deployed("Proxy", first.address)
    node.mined(box.with_abi(first.abi).transact("store", 7))
    node.mined(box.transact("upgradeTo", second.address))
    node.mined(box.with_abi(second.abi).transact("store", 8))
    network_id = network_of(node)
    listen(box, name="Box")
    listen(first, name="First", start=node.head + 1)
    listen(second, name="Second", start=node.head + 1)
    while advance(network_id) or open_ranges(network_id):
        pass
    names = ContractEvent.objects.filter(address=box.address).values_list("event_name", flat=True)
    assert None not in names
    assert len(names) == len(on_chain(node, address=box.address))


def test_what_is_not_canonical_any_more_is_not_stored(node: Node) -> None:
    gem = node.deployed("Gem")
    node.automine(False)
    for _ in range(4):
        gem.transact("spam", 2)
        node.mine()
    network_id = network_of(node)
    final = node.head - 2
    not_final_above(network_id, node, final)
    listen(gem)
    node.reorg(2)
    advance(network_id)
    # The follower still holds the old blocks to be the chain, and the node doesn't have them.
    assert [place for place in stored() if place[0] > final] == []
    assert stored() == on_chain(node, final)
    assert open_ranges(network_id) == [(final + 1, node.head)]
    # It finds out, and reads the rest itself.
    Cursor.objects.update(number=final)
    Backfill.objects.update(paused_until=None)
    advance(network_id)
    assert open_ranges(network_id) == []


def test_contracts_are_read_together(node: Node) -> None:
    gems = [node.deployed("Gem") for _ in range(5)]
    for gem in gems:
        spam(gem, 4)
    with proxied(node) as proxy:
        network_id = network_of(node, proxy.url)
        for number, gem in enumerate(gems):
            listen(gem, name=f"Gem {number}")
        advance(network_id)
        assert proxy.calls["eth_getLogs"] == 1
    assert stored() == on_chain(node)
    assert [*Backfill.objects.values_list("events", flat=True)] == [4] * 5


def test_the_one_behind_is_joined_by_those_that_it_reaches(node: Node) -> None:
    early, late = node.deployed("Gem"), node.deployed("Coin")
    spam(early, 4)
    node.mine(50)
    spam(early, 4)
    network_id = network_of(node)
    listen(early)
    listen(late, start=20, name="Coin")
    while advance(network_id):
        pass
    assert stored() == on_chain(node)


def test_two_workers_racing_store_each_event_once(node: Node) -> None:
    gems = [node.deployed("Gem") for _ in range(3)]
    for gem in gems:
        for _ in range(4):
            spam(gem, 50)
    network_id = network_of(node)
    for number, gem in enumerate(gems):
        listen(gem, start=number, name=f"Gem {number}")
    plan(network_id)
    at_once([lambda: advance(network_id)] * 3)
    while advance(network_id):
        pass
    assert stored() == on_chain(node)
    assert sum(Backfill.objects.values_list("events", flat=True)) == len(stored())
    assert open_ranges(network_id) == []


@pytest.mark.parametrize("style", ["alchemy", "quicknode", "infura", "ankr", "drpc"])
def test_limits_on_blocks_are_learned_from_what_the_provider_says(node: Node, style: str) -> None:
    gem = node.deployed("Gem")
    spam(gem, 5)
    node.mine(60)
    spam(gem, 5)
    with proxied(node) as proxy:
        proxy.on("eth_getLogs", range_limit(style, 10))
        network_id = network_of(node, proxy.url)
        listen(gem)
        while advance(network_id):
            pass
        # 64, 32, 16, 8: three refusals at most, then seven to nine ranges.
        assert proxy.calls["eth_getLogs"] <= 3 * 3 + 10
        assert stored() == on_chain(node)
        assert Backfill.objects.get().trouble is None


@pytest.mark.parametrize("style", ["infura", "size", "timeout"])
def test_limits_on_results_are_learned_from_what_the_provider_says(node: Node, style: str) -> None:
    gem = node.deployed("Gem")
    for _ in range(40):
        spam(gem, 5)
    with proxied(node) as proxy:
        proxy.on("eth_getLogs", result_limit(style, 50))
        network_id = network_of(node, proxy.url)
        listen(gem)
        while advance(network_id):
            pass
        assert proxy.calls["eth_getLogs"] <= 3 * 3 + 10
        assert stored() == on_chain(node)


def test_a_limit_that_was_learned_or_entered_is_kept_to_from_the_beginning(node: Node) -> None:
    learned, entered = node.deployed("Gem"), node.deployed("Gem")
    node.mine(60)
    widths: list[int] = []

    def note(call: Call) -> Any:
        query = call.params[0]
        widths.append(int(query["toBlock"], 16) - int(query["fromBlock"], 16) + 1)
        return range_limit("infura", 20)(call)

    with proxied(node) as proxy:
        proxy.on("eth_getLogs", note)
        network_id = network_of(node, proxy.url)
        listen(learned)
        while advance(network_id):
            pass
        assert max(widths) > 20
        widths.clear()
        listen(entered, name="Entered")
        while advance(network_id):
            pass
        assert max(widths) == 20
        providers.add(network_id, "own", proxy.url, largest_range=7)
        widths.clear()
        Backfill.objects.update(done_at=None, next_block=0)
        while advance(network_id):
            pass
        assert max(widths) == 7


def test_the_first_events_are_committed_before_the_rest_is_read(node: Node) -> None:
    gem = node.deployed("Gem")
    spam(gem, 20)
    node.mine(100)
    spam(gem, 20)
    node.mine(100)
    is_stored = threading.Event()
    ranges: list[int] = []

    def held(call: Call) -> Any:
        ranges.append(int(call.params[0]["fromBlock"], 16))
        if len(ranges) > 1:
            assert is_stored.wait(15), "the first events wait for the others"
        return call.forward()

    def watch() -> None:
        end = monotonic() + 15
        while not stored() and monotonic() < end:
            sleep(0.005)
        if len(stored()) == 20:
            is_stored.set()
        connections.close_all()

    with proxied(node) as proxy:
        proxy.on("eth_getLogs", held)
        network_id = network_of(node, proxy.url)
        listen(gem)
        watching = threading.Thread(target=watch)
        watching.start()
        advance(network_id)
        watching.join()
    assert is_stored.is_set()
    assert ranges[0] == 0
    assert stored() == on_chain(node)
    assert Backfill.objects.get().events == 40
