"""Transactions of a real chain are confirmed, failed or stalled, as the specification's table says,
and nothing that a node or a provider does wrong changes that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from chain import monitor
from chain.core.names import checksummed
from chain.models import Transaction
from chain.rpc.pool import forget
from objects.database import maintenance
from objects.definitions.models import Maintenance
from tests.chain.monitored import (
    UNKNOWN,
    Followed,
    follow,
    forget_network,
    mining_by_hand,
    network,
    paid,
    read_block,
)
from tests.chain.rpc.networks import proxies
from tests.evm import faults
from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied

pytestmark = pytest.mark.django_db

HOUR = 3600


@pytest.fixture(autouse=True)
def _trusted() -> None:
    """No provider is left alone for what it did in another test."""
    forget()


@pytest.fixture
def known_node(db: None, node: Node) -> Node:
    """A node whose network the service knows."""
    network(node.chain_id, node.url)
    return node


@pytest.fixture
def proxy(db: None, node: Node) -> Iterator[Proxy]:
    """A proxy before the node, which is all that the service knows of the network."""
    with proxied(node) as proxy:
        network(node.chain_id, proxy.url)
        yield proxy


def assert_mined(item: Followed, node: Node, status: str) -> None:
    receipt = node.mined(item.wire["hash"])
    assert item.get("status", "blockNumber", "blockHash", "gasUsed", "effectiveGasPrice") == (
        status,
        int(receipt["blockNumber"], 16),
        receipt["blockHash"],
        str(int(receipt["gasUsed"], 16)),
        str(int(receipt["effectiveGasPrice"], 16)),
    )
    assert item.due is None


# -- The table ------------------------------------------------------------------------------------


def test_one_that_is_mined_is_confirmed_by_its_first_check(known_node: Node) -> None:
    transaction = follow(known_node.chain_id, paid(known_node))
    assert transaction.get("status", "attempts") == ("pending", 0)
    assert transaction.check() == 1
    assert_mined(transaction, known_node, "confirmed")
    assert transaction.get("attempts", "lastChecked", "finality") == (0, None, "included")
    assert transaction.wire["from"] == checksummed(known_node.accounts[0])
    assert transaction.check(100) == 0


def test_one_that_reverted_has_failed(known_node: Node) -> None:
    gem = known_node.deployed("Gem")
    sent = known_node.send({**gem.request("boom"), "gas": 100_000})
    transaction = follow(known_node.chain_id, sent)
    transaction.check()
    assert_mined(transaction, known_node, "failed")


def test_one_that_is_not_mined_is_checked_after_15_seconds_and_then_every_30(
    known_node: Node,
) -> None:
    with mining_by_hand(known_node):
        transaction = follow(known_node.chain_id, paid(known_node))
        assert transaction.check() == 1
        assert transaction.get("status", "attempts", "blockNumber") == ("pending", 1, None)
        assert transaction.row.last_checked is not None
        assert transaction.due == 15
        assert transaction.check(14.999) == 0
        assert transaction.check(15) == 1
        assert (transaction.wire["attempts"], transaction.due) == (2, 45)
        assert transaction.check(45.5) == 1
        assert (transaction.wire["attempts"], transaction.due) == (3, 75)
        known_node.mine()
        transaction.check(75)
    assert_mined(transaction, known_node, "confirmed")
    assert transaction.wire["attempts"] == 3


def test_one_that_no_one_mines_is_stalled_by_its_122nd_check(known_node: Node) -> None:
    transaction = follow(known_node.chain_id, UNKNOWN)
    transaction.check_when_due(3)
    assert (transaction.wire["attempts"], transaction.due) == (3, 75)
    due = datetime.fromtimestamp(transaction.start / 1000 + HOUR - 15, UTC)
    Transaction.objects.update(attempts=120, next_check_at=due)
    transaction.check_when_due()
    assert (transaction.status, transaction.wire["attempts"], transaction.due) == (
        "pending",
        121,
        HOUR + 15,
    )
    transaction.check_when_due()
    assert (transaction.status, transaction.wire["attempts"]) == ("stalled", 122)
    last = transaction.row.last_checked
    assert last is not None
    assert last.timestamp() * 1000 - transaction.start == (HOUR + 15) * 1000


def test_a_new_block_ends_those_that_it_has(known_node: Node) -> None:
    with mining_by_hand(known_node):
        here, there = (follow(known_node.chain_id, paid(known_node, place)) for place in (0, 1))
        elsewhere = follow(known_node.chain_id + 1, UNKNOWN)
        here.check()
        before = Transaction.objects.filter(object_id=elsewhere.object_id).values().get()
        height = known_node.mine()
    assert read_block(known_node.chain_id, height) == 2
    for item in (here, there):
        assert_mined(item, known_node, "confirmed")
    assert (here.wire["attempts"], there.wire["attempts"]) == (1, 0)
    assert Transaction.objects.filter(object_id=elsewhere.object_id).values().get() == before
    assert read_block(known_node.chain_id, height) == 0


def test_a_new_block_without_them_changes_nothing(known_node: Node) -> None:
    with mining_by_hand(known_node):
        transaction = follow(known_node.chain_id, paid(known_node))
        transaction.check()
        before = Transaction.objects.values().get()
        one_other = follow(known_node.chain_id, UNKNOWN)
        known_node.drop(transaction.wire["hash"])
        assert read_block(known_node.chain_id, known_node.mine()) == 0
    assert Transaction.objects.filter(object_id=transaction.object_id).values().get() == before
    assert one_other.get("attempts", "lastChecked") == (0, None)


def test_networks_that_are_not_known_wait(known_node: Node) -> None:
    transaction = follow(known_node.chain_id, paid(known_node))
    forget_network(known_node.chain_id)
    assert transaction.check(HOUR * 2) == 0
    assert transaction.get("status", "attempts", "lastChecked") == ("pending", 0, None)
    network(known_node.chain_id, known_node.url)
    assert transaction.check() == 1
    assert transaction.status == "confirmed"


def test_it_is_recorded_in_maintenance_mode_unless_the_chain_is_paused(known_node: Node) -> None:
    transaction = follow(known_node.chain_id, paid(known_node))
    mode = Maintenance.objects.create(
        id=1, message="Later.", since="2026-01-01T00:00:00Z", chain_paused=True
    )
    assert maintenance.is_chain_paused()
    assert transaction.check() == 0
    mode.chain_paused = False
    mode.save()
    assert transaction.check() == 1
    assert transaction.row.status == "confirmed"


# -- Nodes that err -------------------------------------------------------------------------------


def test_an_error_of_the_node_is_no_check(proxy: Proxy, node: Node) -> None:
    transaction = follow(node.chain_id, paid(node))
    for n, kind in enumerate(
        (
            lambda: proxy.on("*", faults.fails(-32603, "internal error")),
            lambda: proxy.on_request(faults.server_error()),
        )
    ):
        kind()
        transaction.check_when_due()
        assert transaction.get("status", "attempts", "lastChecked") == ("pending", 0, None)
        assert transaction.row.failed_checks == n + 1
        proxy.be_good()
        forget()
    transaction.check_when_due()
    assert transaction.status == "confirmed"


def test_one_refused_receipt_holds_up_no_other(proxy: Proxy, node: Node) -> None:
    bad, good = (follow(node.chain_id, paid(node, place)) for place in (0, 1))
    its_hash = bad.wire["hash"]
    refused = faults.only_if(
        lambda call: call.params == [its_hash], faults.fails(-32000, "no such state")
    )
    proxy.on("eth_getTransactionReceipt", refused)
    good.check()
    assert (good.status, bad.status) == ("confirmed", "pending")
    assert bad.get("attempts", "lastChecked") == (0, None)
    proxy.be_good()
    bad.check_when_due()
    assert bad.status == "confirmed"


@pytest.mark.parametrize(
    "change",
    [
        {"status": "0x7"},
        {"blockNumber": "0xffffffffffffffff"},
        {"transactionHash": "0x" + "cd" * 32},
        {"gasUsed": 21000},
        {"from": None},
    ],
)
def test_what_can_t_be_a_receipt_is_no_answer(
    proxy: Proxy, node: Node, change: dict[str, object]
) -> None:
    transaction = follow(node.chain_id, paid(node))
    proxy.on("eth_getTransactionReceipt", faults.altered(lambda receipt: {**receipt, **change}))
    transaction.check()
    assert transaction.get("status", "attempts", "lastChecked") == ("pending", 0, None)


def test_receipts_of_older_nodes_are_completed(proxy: Proxy, node: Node) -> None:
    transaction = follow(node.chain_id, paid(node))
    gone = ("effectiveGasPrice", "status")
    proxy.on(
        "eth_getTransactionReceipt",
        faults.altered(lambda results: {k: v for k, v in results.items() if k not in gone}),
    )
    transaction.check()
    price = int(node.rpc("eth_getTransactionByHash", transaction.wire["hash"])["gasPrice"], 16)
    assert transaction.get("status", "effectiveGasPrice") == ("confirmed", str(price))


@pytest.mark.parametrize("methods", [1, 2])
def test_a_provider_that_lags_for_45_minutes_fails_nothing(
    proxy: Proxy, node: Node, methods: int
) -> None:
    """As a relayer of transactions once did: it took no receipt and a nonce that had moved on for
    proof that a transaction was replaced."""
    transaction = follow(node.chain_id, paid(node))
    for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash")[:methods]:
        proxy.on(method, faults.gives(None))
    node.mine(100)
    for seconds in (0, 15, 45, 75, 300, 600, 1200, 1800, 45 * 60):
        assert transaction.check(seconds) == 1
        assert transaction.row.status == "pending"
    proxy.be_good()
    transaction.check_when_due()
    assert_mined(transaction, node, "confirmed")
    assert not transaction.wire.get("replacedSuspected")


def test_what_one_of_two_providers_does_not_know_is_not_suspected(known_node: Node) -> None:
    """One of them has lost everything but the nonces of accounts."""
    with ExitStack() as stack:
        first, _ = proxies(stack, known_node, "first", "second")
        forget()
        with mining_by_hand(known_node):
            transaction = follow(known_node.chain_id, paid(known_node))
            transaction.check()
            assert transaction.wire["nonce"] is not None
            for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash"):
                first.on(method, faults.gives(None))
            known_node.mine(100)
            transaction.check_when_due(10)
            assert first.calls["eth_getTransactionCount"] > 0, "it came to a judgement"
            assert transaction.get("status", "replacedSuspected") == ("pending", None)
            first.be_good()
            transaction.check_when_due()
    assert_mined(transaction, known_node, "confirmed")


def test_one_of_two_providers_alone_suspects_no_one(known_node: Node) -> None:
    with ExitStack() as stack:
        first, second = proxies(stack, known_node, "first", "second")
        forget()
        with mining_by_hand(known_node):
            transaction = follow(known_node.chain_id, paid(known_node))
            transaction.check()
            for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash"):
                first.on(method, faults.gives(None))
            second.refuse()
            known_node.mine(100)
            transaction.check_when_due(10)
            assert first.calls["eth_getTransactionCount"] > 0, "it came to a judgement"
            assert transaction.get("status", "replacedSuspected") == ("pending", None)


# -- Replaced, dropped, waiting -------------------------------------------------------------------


def test_a_replaced_one_is_suspected_and_stays_pending_until_it_stalls(known_node: Node) -> None:
    with mining_by_hand(known_node):
        nonce = int(known_node.rpc("eth_getTransactionCount", known_node.accounts[0], "latest"), 16)
        old = follow(known_node.chain_id, paid(known_node, nonce=nonce, gasPrice=2 * 10**9))
        old.check()
        assert old.get("nonce", "attempts") == (nonce, 1)
        new = follow(known_node.chain_id, paid(known_node, nonce=nonce, gasPrice=20 * 10**9))
        new.check()
        known_node.mine(2)
        new.check_when_due()
        assert new.status == "confirmed"
        old.check(15)
        old.check(45)
        old.check(75)
        assert not old.wire.get("replacedSuspected"), "its block isn't final yet"
        known_node.mine(100)
        old.check_when_due(3)
    assert old.get("status", "replacedSuspected", "replacedBy") == (
        "pending",
        True,
        new.wire["hash"],
    )
    old.check(HOUR + 1)
    assert old.get("status", "replacedSuspected") == ("stalled", True)


def test_a_dropped_one_isn_t_suspected_since_its_nonce_is_free(known_node: Node) -> None:
    with mining_by_hand(known_node):
        transaction = follow(known_node.chain_id, paid(known_node))
        transaction.check()
        known_node.drop(transaction.wire["hash"])
        known_node.mine(100)
        transaction.check_when_due(10)
        assert transaction.get("status", "replacedSuspected") == ("pending", None)
        transaction.check(HOUR + 1)
    assert transaction.get("status", "attempts", "replacedSuspected") == ("stalled", 12, None)


def test_one_that_waits_for_an_earlier_nonce_is_pending_until_that_is_there(
    known_node: Node,
) -> None:
    with mining_by_hand(known_node):
        nonce = int(known_node.rpc("eth_getTransactionCount", known_node.accounts[0], "latest"), 16)
        transaction = follow(known_node.chain_id, paid(known_node, nonce=nonce + 1))
        transaction.check_when_due(3)
        known_node.mine(100)
        transaction.check_when_due(8)
        assert transaction.get("status", "replacedSuspected", "nonce") == (
            "pending",
            None,
            nonce + 1,
        )
        paid(known_node, nonce=nonce)
        read_block(known_node.chain_id, known_node.mine())
    assert_mined(transaction, known_node, "confirmed")


# -- After it has stalled -------------------------------------------------------------------------


def stalled(node: Node) -> Followed:
    transaction = follow(node.chain_id, paid(node))
    Transaction.objects.filter(object_id=transaction.object_id).update(attempts=121)
    transaction.check(HOUR + 15)
    assert transaction.status == "stalled"
    return transaction


@pytest.mark.parametrize("by_block", [False, True])
def test_one_that_is_mined_late_stays_stalled_and_says_so(known_node: Node, by_block: bool) -> None:
    with mining_by_hand(known_node):
        transaction = stalled(known_node)
        height = known_node.mine()
        if by_block:
            read_block(known_node.chain_id, height)
        else:
            assert transaction.due == HOUR + 15 + 600
            transaction.check_when_due()
    receipt = known_node.mined(transaction.wire["hash"])
    assert transaction.get("status", "blockNumber", "attempts") == ("stalled", None, 122)
    assert transaction.wire["lateReceipt"] == {
        "status": "confirmed",
        "blockNumber": height,
        "blockHash": receipt["blockHash"],
        "transactionIndex": 0,
        "gasUsed": "21000",
        "effectiveGasPrice": str(int(receipt["effectiveGasPrice"], 16)),
    }


def test_a_late_receipt_of_a_block_that_is_gone_is_looked_at_at_once(known_node: Node) -> None:
    with mining_by_hand(known_node):
        transaction = stalled(known_node)
        height = known_node.mine()
        read_block(known_node.chain_id, height)
        later = transaction.due
        known_node.reorg(1)
        monitor.on_reorganisation(known_node.chain_id, height)
        assert transaction.due == later, "its block is still there"
        monitor.on_reorganisation(known_node.chain_id, height - 1)
        assert later is not None
        assert (transaction.due or 0) < later
        transaction.check(HOUR + 20)
    assert transaction.get("status", "lateReceipt") == ("stalled", None)


def test_a_deployment_may_have_late_ones_confirmed(known_node: Node, settings: object) -> None:
    settings.SERVICE = {**settings.SERVICE, "STALLED_REVIVE": True}  # type: ignore[attr-defined]
    with mining_by_hand(known_node):
        transaction = stalled(known_node)
        known_node.mine()
        transaction.check_when_due()
    assert_mined(transaction, known_node, "confirmed")


def test_a_stalled_one_is_looked_for_during_a_day_and_no_longer(known_node: Node) -> None:
    with mining_by_hand(known_node):
        transaction = stalled(known_node)
        before = transaction.wire["updatedAt"]
        transaction.check_when_due(2)
        assert transaction.due == HOUR + 15 + 3 * 600
        transaction.check(HOUR + 24 * HOUR + 1)
    assert transaction.due is None
    assert transaction.get("updatedAt", "attempts") == (before, 122), "nothing was found"
