"""A network is read as it grows, each block and each event once, in few requests."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from chain import monitor, rpc
from chain.indexing import head
from chain.indexing.head import halts
from chain.models import Backfill, Block, Blockchain, OutboxEntry, Transaction
from objects.database import maintenance
from tests.chain.indexed_network import Network, listen, network
from tests.evm.faults import before, fails, gives, only_if
from tests.evm.node import Node
from tests.evm.proxy import Call, Hook
from tests.functions.jobs.processes import until
from tests.other_process import database_url

pytestmark = pytest.mark.django_db
with_others = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    """A network with a contract that is listened to, read up to its head."""
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        node.mine(1)
        world.follow()
        world.check()
        yield world


def test_reading_begins_with_the_last_final_block(node: Node) -> None:
    node.mine(100)
    with network(node) as world:
        cursor = world.follow()
        assert (cursor.began_at, cursor.number) == (node.head - 64, node.head)
        assert (cursor.head, cursor.finalized) == (node.head, node.head - 64)
        world.check()


@pytest.mark.parametrize(
    "answer", [fails(-32602, "invalid argument 0: hex string without 0x prefix"), gives(None)]
)
def test_a_node_without_tags_is_final_below_64_blocks(node: Node, answer: Hook) -> None:
    node.mine(100)
    with network(node) as world:
        world.proxy.on("eth_getBlockByNumber", only_if(_asks_for_a_tag, answer))
        cursor = world.follow()
        assert (cursor.began_at, cursor.finalized) == (node.head - 64, node.head - 64)
        world.check()


def _asks_for_a_tag(call: Call) -> bool:
    return call.params[0] in ("safe", "finalized")


def test_a_depth_that_is_set_goes_before_tags(node: Node) -> None:
    node.mine(100)
    with network(node, finality_depth=7) as world:
        cursor = world.follow()
        assert (cursor.began_at, cursor.finalized) == (node.head - 7, node.head - 7)


def test_events_are_stored_and_told_in_the_order_of_the_chain(world: Network) -> None:
    world.mint(3)
    world.node.mine(2)
    world.mint(2)
    world.follow()
    world.check()
    assert len(world.shown()) == 5
    rows = OutboxEntry.objects.order_by("seq").values_list("event_id", flat=True)
    places = [_place(row) for row in rows]
    assert places == sorted(places)
    assert len(places) == 5


def _place(event_id: str) -> tuple[int, int]:
    from chain.models import ContractEvent

    event = ContractEvent.objects.get(pk=event_id)
    return event.block_number or 0, event.log_index or 0


# -- Requests -------------------------------------------------------------------------------------


def test_a_look_at_nothing_new_is_one_request(world: Network) -> None:
    assert world.requests() == 1
    assert world.requests() == 1


def test_a_new_block_is_two_requests_with_the_receipts_in_it(world: Network) -> None:
    sent = world.send(2)
    monitor.start(world.network_id, sent)
    world.node.mine()
    assert world.requests() == 2
    world.check()
    assert Transaction.objects.get(hash=sent).status == "confirmed"


@pytest.mark.parametrize(("blocks", "requests"), [(2, 2), (64, 2), (65, 3), (200, 5)])
def test_many_new_blocks_are_a_request_for_each_64(
    world: Network, blocks: int, requests: int
) -> None:
    for _ in range(blocks // 20):
        world.node.mine(19)
        world.mint(2)
    world.node.mine(blocks - blocks // 20 * 20)
    assert world.requests() <= requests
    world.check()


def test_final_blocks_are_read_in_large_steps(world: Network) -> None:
    for _ in range(3):
        world.node.mine(100)
        world.mint(5)
    world.node.mine(200)
    head.indexer.forget()  # finality is polled every ten seconds
    assert world.requests() <= 2 + 8
    world.check()
    assert Block.objects.count() < 200


def test_without_contracts_only_headers_are_read(node: Node) -> None:
    node.mine(3)
    with network(node) as world:
        world.follow()
        world.mint(3)
        world.mint(3)
        world.follow()
        assert world.cursor.number == node.head
        assert world.shown() == set()
        assert world.proxy.calls["eth_getLogs"] == 0
        node.mine(400)
        head.indexer.forget()
        assert world.requests() <= 5
        assert world.cursor.number == node.head


# -- What is read ---------------------------------------------------------------------------------


def test_blocks_are_read_when_they_are_as_deep_as_the_network_asks_for(node: Node) -> None:
    node.mine(3)
    with network(node, confirmations=5) as world:
        listen(world)
        world.follow()
        world.mint(2)
        world.follow()
        assert world.shown() == set()
        world.node.mine(4)
        assert world.follow().number == node.head - 5
        assert world.shown() == set()
        world.node.mine(1)
        assert world.follow().number == node.head - 5
        assert len(world.shown()) == 2


def test_a_contract_that_is_registered_later_is_read_from_there_on(world: Network) -> None:
    world.node.automine(True)
    other = world.node.deployed("Gem")
    world.node.automine(False)
    world.follow()
    before = world.cursor.number
    listen(world, other, "Other")
    other.transact("spam", 3)
    world.mint(1)
    world.follow()
    assert len(world.shown()) == 4
    planned = Backfill.objects.get(address__iexact=other.address)
    assert (planned.first_block, planned.last_block) == (0, before)


@with_others
def test_a_contract_that_is_registered_while_blocks_are_read_misses_none(node: Node) -> None:
    node.mine(3)
    with network(node) as world:
        other = world.gem
        node.automine(True)
        world.gem = node.deployed("Gem")
        node.automine(False)
        listen(world)
        world.follow()
        before_it = world.cursor.number
        other.transact("spam", 3)
        world.mint(1)
        world.mint(1)
        world.proxy.on("eth_getLogs", before(lambda: listen(world, other, "Other")), times=1)
        world.follow()
        assert world.cursor.number == node.head
        assert len(world.shown()) == 5
        assert Backfill.objects.get(address__iexact=other.address).last_block == before_it


def test_what_is_not_listened_to_any_more_is_not_read(world: Network) -> None:
    from chain.indexing.contract_versions import contracts_changed
    from chain.models import SmartContract

    SmartContract.objects.update(listening=False)
    contracts_changed({"networkId": world.network_id})
    world.mint(2)
    world.follow()
    assert world.cursor.number == world.node.head
    assert world.shown() == set()


# -- Who else is there ----------------------------------------------------------------------------


@with_others
def test_those_who_wait_for_the_outbox_are_woken_up(node: Node) -> None:
    node.mine(3)
    with network(node) as world, psycopg.connect(database_url(), autocommit=True) as waiting:
        listen(world)
        world.follow()
        waiting.execute(f"LISTEN {head.CHANNEL}")
        world.mint(2)
        world.follow()
        (note,) = waiting.notifies(timeout=10, stop_after=1)
        assert note.payload == f"{world.network_id} 2"


@with_others
def test_only_one_process_at_a_time_reads_a_network(node: Node) -> None:
    node.mine(3)
    with network(node) as world, psycopg.connect(database_url(), autocommit=True) as other:
        listen(world)
        world.follow()
        world.mint(1)
        sql = "SELECT pg_try_advisory_lock(hashtextextended('chain.follow', %s))"
        assert other.execute(sql, [world.network_id]).fetchone() == (True,)
        assert world.requests() == 0
        other.close()  # as if its process had died; the server notices it
        until(lambda: world.follow().number == node.head)
        world.check()


def test_nothing_is_read_while_the_chain_is_paused(world: Network) -> None:
    world.mint(1)
    maintenance.on(pause_chain=True)
    assert world.requests() == 0
    assert world.shown() == set()
    maintenance.off()
    maintenance.on(pause_chain=False)
    world.follow()
    world.check()


def test_a_network_that_is_not_active_is_left_alone(world: Network) -> None:
    world.mint(1)
    Blockchain.objects.update(active=False)
    assert world.requests() == 0
    Blockchain.objects.update(active=True)
    world.follow()
    world.check()


def test_an_unknown_network_is_nothing(node: Node) -> None:
    head.follow(424242)
    with pytest.raises(halts.CannotResume):
        head.resume(424242)
    assert rpc.health(424242) == []
