"""Events have the time of their block, whichever way they are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chain.indexing.head import indexer
from chain.indexing.history.backfill import advance
from chain.indexing.repair.audits import audit, examine
from chain.management.comparison import describe
from chain.models import Block, ContractEvent, Coverage, Cursor, OutboxEntry
from objects.database.statements import fetch
from tests.chain.backfills import listen as listen_to
from tests.chain.backfills import network_of, not_final_above, spam
from tests.chain.indexed_network import Network, listen, network
from tests.evm.artefacts import Contract
from tests.evm.faults import altered
from tests.evm.node import Node
from tests.evm.proxy import Hook, proxied
from tests.rest import Api

pytestmark = pytest.mark.django_db(transaction=True)

NAMED = "blockTimestamp"


def with_time(change: Callable[[str], Any]) -> Hook:
    """Logs whose own time is another one."""
    return altered(lambda logs: [{**log, NAMED: change(log["blockNumber"])} for log in logs])


def without_time() -> Hook:
    """Logs of a node that doesn't say when their blocks were made."""
    return altered(lambda logs: [{key: log[key] for key in log if key != NAMED} for log in logs])


@pytest.fixture(params=["by the log", "by the header"])
def world(node: Node, request: pytest.FixtureRequest) -> Iterator[Network]:
    with network(node) as world:
        if request.param == "by the header":
            world.proxy.on("eth_getLogs", without_time())
        yield world


@pytest.fixture
def gem(node: Node) -> Contract:
    """A contract with events in ten blocks that are hours apart."""
    gem = node.deployed("Gem")
    for _ in range(10):
        node.rpc("evm_increaseTime", 5000)
        spam(gem, 2)
    return gem


def check_times(node: Node) -> None:
    """Each event has the time that its block has on the chain."""
    rows = ContractEvent.objects.filter(canonical=True)
    times = {row.block_hash: row.block_timestamp for row in rows}
    assert times
    for hash_, time in times.items():
        assert time is not None
        header = node.rpc("eth_getBlockByHash", hash_, False)
        assert int(header["timestamp"], 16) == time.timestamp()


def test_events_of_new_blocks_have_it(world: Network, client: Api) -> None:
    listen(world)
    world.follow()
    world.mint()  # one new block
    world.follow()
    for _ in range(3):
        world.mint(2)  # several
    world.follow()
    check_times(world.node)
    assert ContractEvent.objects.count() == 7
    payloads = [json.loads(text) for text in OutboxEntry.objects.values_list("payload", flat=True)]
    [shown, *_] = client.results("ContractEvent", order=NAMED, limit=1)
    assert shown[NAMED] == payloads[0][NAMED]
    assert shown[NAMED]["__type"] == "Date"
    since = {NAMED: {"$gte": shown[NAMED]}}
    assert len(client.results("ContractEvent", where=json.dumps(since))) == 7


def test_final_blocks_after_a_long_pause_have_it(world: Network) -> None:
    listen(world)
    world.follow()
    for _ in range(4):
        world.mint(2)
        world.node.mine(150)
    indexer.forget()  # what is final is requested every ten seconds
    world.follow()
    assert Block.objects.count() < 400, "read without headers"
    assert ContractEvent.objects.count() == 8
    check_times(world.node)


def test_history_has_it(node: Node, gem: Contract) -> None:
    network_id = network_of(node)
    listen_to(gem)
    advance(network_id)
    assert ContractEvent.objects.count() == 20
    check_times(node)


def test_history_of_a_node_whose_logs_have_no_time_costs_one_header_a_block(
    node: Node, gem: Contract
) -> None:
    with proxied(node) as proxy:
        proxy.on("eth_getLogs", without_time())
        network_id = network_of(node, proxy.url)
        listen_to(gem)
        advance(network_id)
        assert proxy.calls["eth_getBlockByHash"] == 10
    check_times(node)


def test_history_that_is_not_final_has_it(node: Node, gem: Contract) -> None:
    with proxied(node) as proxy:
        proxy.on("eth_getLogs", without_time())
        network_id = network_of(node, proxy.url)
        not_final_above(network_id, node, 5)
        listen_to(gem)
        advance(network_id)
    assert ContractEvent.objects.count() == 20
    check_times(node)


@pytest.mark.parametrize("time", [lambda number: "0x1", lambda number: number])
def test_a_node_that_contradicts_its_headers_is_not_believed(node: Node, time: Any) -> None:
    with network(node) as world:
        listen(world)
        world.follow()
        world.proxy.on("eth_getLogs", with_time(time))
        world.mint()
        assert "another time" in str(world.follow().trouble)
        assert not ContractEvent.objects.exists()
        world.proxy.be_good()
        world.follow()
        check_times(node)


@pytest.mark.parametrize("time", ["0x0", "soon", 17, "0xffffffffffffffffff", None])
def test_what_is_no_time_is_looked_up_in_the_header(node: Node, gem: Contract, time: Any) -> None:
    with proxied(node) as proxy:
        proxy.on("eth_getLogs", with_time(lambda number: time))
        network_id = network_of(node, proxy.url)
        listen_to(gem)
        advance(network_id)
    assert ContractEvent.objects.count() == 20
    check_times(node)


def test_a_node_without_the_block_of_its_logs_has_nothing_stored(node: Node, gem: Contract) -> None:
    with proxied(node) as proxy:
        proxy.on("eth_getLogs", without_time())
        proxy.on("eth_getBlockByHash", altered(lambda block: None))
        network_id = network_of(node, proxy.url)
        listen_to(gem)
        advance(network_id)
        assert not ContractEvent.objects.exists()


# -- What was stored before ------------------------------------------------------------------------


def test_the_upgrade_leaves_the_rows_of_the_table_alone(client: Api) -> None:
    executor = MigrationExecutor(connection)
    [upgrade] = [key for key in executor.loader.graph.nodes if key[1].endswith("block_timestamp")]
    before = executor.loader.graph.node_map[upgrade].parents
    file = "SELECT pg_relation_filenode('chain_contract_event')"
    executor.migrate([parent.key for parent in before if parent.key[0] == "chain"])
    try:
        fetch(
            "INSERT INTO chain_contract_event (object_id, created_at, updated_at, data, event_name)"
            " VALUES ('before0001', now(), now(), '{}', 'Transfer')",
            (),
            prepare=False,
        )
        rows = fetch(file, (), prepare=False)
    finally:
        MigrationExecutor(connection).migrate(executor.loader.graph.leaf_nodes())
    assert fetch(file, (), prepare=False) == rows
    [shown] = client.results("ContractEvent")
    assert shown["eventName"] == "Transfer"
    assert NAMED not in shown


def stored_before(node: Node, gem: Contract, url: str | None = None) -> int:
    """Events of a release that didn't store it, that subscribers received."""
    network_id = network_of(node, url)
    listen_to(gem)
    advance(network_id)
    ContractEvent.objects.update(block_timestamp=None)
    Cursor.objects.update(audited=0)
    Coverage.objects.update(followed_from=0)
    return network_id


@pytest.mark.parametrize("hook", [None, without_time()])
def test_reading_again_fills_in_what_was_stored_without_it(
    node: Node, gem: Contract, hook: Hook | None
) -> None:
    with proxied(node) as proxy:
        network_id = stored_before(node, gem, proxy.url)
        if hook is not None:
            proxy.on("eth_getLogs", hook)
        report = examine(network_id, 0, node.head)
        assert report.is_clean
        assert (report.undated, report.dated) == (20, 0)
        assert "20 without the time of their block" in describe(report)
        report = examine(network_id, 0, node.head, repairing=True, notify_changes=False)
        assert report.is_clean
        assert (report.undated, report.dated, report.mended) == (0, 20, 0)
        assert "20 have been given it" in describe(report)
        check_times(node)
        report = examine(network_id, 0, node.head)
        assert (report.undated, report.dated) == (0, 0)
        assert "time" not in describe(report)


def test_an_audit_fills_it_in_and_notifies_no_client(node: Node, gem: Contract) -> None:
    network_id = stored_before(node, gem)
    report = audit(network_id)
    assert report is not None
    assert (report.is_clean, report.dated) == (True, 20)
    check_times(node)
    assert not OutboxEntry.objects.exists()


def test_another_time_than_that_of_the_block_is_mended_and_told(node: Node, gem: Contract) -> None:
    network_id = stored_before(node, gem)
    examine(network_id, 0, node.head, repairing=True)
    event = ContractEvent.objects.order_by("block_number")[0]
    ContractEvent.objects.filter(pk=event.pk).update(block_timestamp=event.created_at)
    report = examine(network_id, 0, node.head, repairing=True)
    assert (report.counts["different"], report.mended) == (1, 1)
    check_times(node)
    assert [*OutboxEntry.objects.order_by("seq").values_list("op", flat=True)] == [
        "removed",
        "added",
    ]


def test_an_event_that_comes_back_has_it(node: Node) -> None:
    with network(node) as world:
        listen(world)
        world.follow()
        before = world.cursor
        world.mint()
        world.follow()
        ContractEvent.objects.update(block_timestamp=None, canonical=False)
        Cursor.objects.update(number=before.number, hash=before.hash)
        world.follow()
        check_times(node)
