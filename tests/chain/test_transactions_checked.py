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
from tests.chain.followed import (
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
def known(db: None, node: Node) -> Node:
    """A node whose network the service knows."""
    network(node.chain_id, node.url)
    return node


@pytest.fixture
def proxy(db: None, node: Node) -> Iterator[Proxy]:
    """A proxy before the node, which is all that the service knows of the network."""
    with proxied(node) as proxy:
        network(node.chain_id, proxy.url)
        yield proxy


def assert_mined(one: Followed, node: Node, status: str) -> None:
    receipt = node.mined(one.wire["hash"])
    assert one.get("status", "blockNumber", "blockHash", "gasUsed", "effectiveGasPrice") == (
        status,
        int(receipt["blockNumber"], 16),
        receipt["blockHash"],
        str(int(receipt["gasUsed"], 16)),
        str(int(receipt["effectiveGasPrice"], 16)),
    )
    assert one.due is None


# -- The table ------------------------------------------------------------------------------------


def test_one_that_is_mined_is_confirmed_by_its_first_check(known: Node) -> None:
    one = follow(known.chain_id, paid(known))
    assert one.get("status", "attempts") == ("pending", 0)
    assert one.check() == 1
    assert_mined(one, known, "confirmed")
    assert one.get("attempts", "lastChecked", "finality") == (0, None, "included")
    assert one.wire["from"] == checksummed(known.accounts[0])
    assert one.check(100) == 0


def test_one_that_reverted_has_failed(known: Node) -> None:
    gem = known.deployed("Gem")
    sent = known.send({**gem.request("boom"), "gas": 100_000})
    one = follow(known.chain_id, sent)
    one.check()
    assert_mined(one, known, "failed")


def test_one_that_is_not_mined_is_checked_after_15_seconds_and_then_every_30(known: Node) -> None:
    with mining_by_hand(known):
        one = follow(known.chain_id, paid(known))
        assert one.check() == 1
        assert one.get("status", "attempts", "blockNumber") == ("pending", 1, None)
        assert one.row.last_checked is not None
        assert one.due == 15
        assert one.check(14.999) == 0
        assert one.check(15) == 1
        assert (one.wire["attempts"], one.due) == (2, 45)
        assert one.check(45.5) == 1
        assert (one.wire["attempts"], one.due) == (3, 75)
        known.mine()
        one.check(75)
    assert_mined(one, known, "confirmed")
    assert one.wire["attempts"] == 3


def test_one_that_nobody_mines_is_stalled_by_its_122nd_check(known: Node) -> None:
    one = follow(known.chain_id, UNKNOWN)
    one.check_when_due(3)
    assert (one.wire["attempts"], one.due) == (3, 75)
    due = datetime.fromtimestamp(one.start / 1000 + HOUR - 15, UTC)
    Transaction.objects.update(attempts=120, next_check_at=due)
    one.check_when_due()
    assert (one.status, one.wire["attempts"], one.due) == ("pending", 121, HOUR + 15)
    one.check_when_due()
    assert (one.status, one.wire["attempts"]) == ("stalled", 122)
    last = one.row.last_checked
    assert last is not None
    assert last.timestamp() * 1000 - one.start == (HOUR + 15) * 1000


def test_a_new_block_ends_those_that_it_has(known: Node) -> None:
    with mining_by_hand(known):
        here, there = (follow(known.chain_id, paid(known, place)) for place in (0, 1))
        elsewhere = follow(known.chain_id + 1, UNKNOWN)
        here.check()
        before = Transaction.objects.filter(object_id=elsewhere.object_id).values().get()
        height = known.mine()
    assert read_block(known.chain_id, height) == 2
    for one in (here, there):
        assert_mined(one, known, "confirmed")
    assert (here.wire["attempts"], there.wire["attempts"]) == (1, 0)
    assert Transaction.objects.filter(object_id=elsewhere.object_id).values().get() == before
    assert read_block(known.chain_id, height) == 0


def test_a_new_block_without_them_changes_nothing(known: Node) -> None:
    with mining_by_hand(known):
        one = follow(known.chain_id, paid(known))
        one.check()
        before = Transaction.objects.values().get()
        one_other = follow(known.chain_id, UNKNOWN)
        known.drop(one.wire["hash"])
        assert read_block(known.chain_id, known.mine()) == 0
    assert Transaction.objects.filter(object_id=one.object_id).values().get() == before
    assert one_other.get("attempts", "lastChecked") == (0, None)


def test_networks_that_are_not_known_wait(known: Node) -> None:
    one = follow(known.chain_id, paid(known))
    forget_network(known.chain_id)
    assert one.check(HOUR * 2) == 0
    assert one.get("status", "attempts", "lastChecked") == ("pending", 0, None)
    network(known.chain_id, known.url)
    assert one.check() == 1
    assert one.status == "confirmed"


def test_it_is_recorded_in_maintenance_mode_unless_the_chain_is_paused(known: Node) -> None:
    one = follow(known.chain_id, paid(known))
    mode = Maintenance.objects.create(
        id=1, message="Later.", since="2026-01-01T00:00:00Z", chain_paused=True
    )
    assert maintenance.is_chain_paused()
    assert one.check() == 0
    mode.chain_paused = False
    mode.save()
    assert one.check() == 1
    assert one.row.status == "confirmed"


# -- Nodes that err -------------------------------------------------------------------------------


def test_an_error_of_the_node_is_no_check(proxy: Proxy, node: Node) -> None:
    one = follow(node.chain_id, paid(node))
    for n, told in enumerate(
        (
            lambda: proxy.on("*", faults.fails(-32603, "internal error")),
            lambda: proxy.on_request(faults.server_error()),
        )
    ):
        told()
        one.check_when_due()
        assert one.get("status", "attempts", "lastChecked") == ("pending", 0, None)
        assert one.row.failed_checks == n + 1
        proxy.be_good()
        forget()
    one.check_when_due()
    assert one.status == "confirmed"


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
    one = follow(node.chain_id, paid(node))
    proxy.on("eth_getTransactionReceipt", faults.altered(lambda receipt: {**receipt, **change}))
    one.check()
    assert one.get("status", "attempts", "lastChecked") == ("pending", 0, None)


def test_receipts_of_older_nodes_are_completed(proxy: Proxy, node: Node) -> None:
    one = follow(node.chain_id, paid(node))
    gone = ("effectiveGasPrice", "status")
    proxy.on(
        "eth_getTransactionReceipt",
        faults.altered(lambda found: {k: v for k, v in found.items() if k not in gone}),
    )
    one.check()
    price = int(node.rpc("eth_getTransactionByHash", one.wire["hash"])["gasPrice"], 16)
    assert one.get("status", "effectiveGasPrice") == ("confirmed", str(price))


@pytest.mark.parametrize("methods", [1, 2])
def test_a_provider_that_lags_for_45_minutes_fails_nothing(
    proxy: Proxy, node: Node, methods: int
) -> None:
    """As a relayer of transactions once did: it took no receipt and a nonce that had moved on for
    proof that a transaction was replaced."""
    one = follow(node.chain_id, paid(node))
    for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash")[:methods]:
        proxy.on(method, faults.gives(None))
    node.mine(100)
    for seconds in (0, 15, 45, 75, 300, 600, 1200, 1800, 45 * 60):
        assert one.check(seconds) == 1
        assert one.row.status == "pending"
    proxy.be_good()
    one.check_when_due()
    assert_mined(one, node, "confirmed")
    assert not one.wire.get("replacedSuspected")


def test_what_one_of_two_providers_does_not_know_is_not_suspected(known: Node) -> None:
    """One of them has lost everything but the nonces of accounts."""
    with ExitStack() as stack:
        first, _ = proxies(stack, known, "first", "second")
        forget()
        with mining_by_hand(known):
            one = follow(known.chain_id, paid(known))
            one.check()
            assert one.wire["nonce"] is not None
            for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash"):
                first.on(method, faults.gives(None))
            known.mine(100)
            one.check_when_due(10)
            assert first.calls["eth_getTransactionCount"] > 0, "it came to a judgement"
            assert one.get("status", "replacedSuspected") == ("pending", None)
            first.be_good()
            one.check_when_due()
    assert_mined(one, known, "confirmed")


def test_one_of_two_providers_alone_suspects_nobody(known: Node) -> None:
    with ExitStack() as stack:
        first, second = proxies(stack, known, "first", "second")
        forget()
        with mining_by_hand(known):
            one = follow(known.chain_id, paid(known))
            one.check()
            for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash"):
                first.on(method, faults.gives(None))
            second.refuse()
            known.mine(100)
            one.check_when_due(10)
            assert first.calls["eth_getTransactionCount"] > 0, "it came to a judgement"
            assert one.get("status", "replacedSuspected") == ("pending", None)


# -- Replaced, dropped, waiting -------------------------------------------------------------------


def test_a_replaced_one_is_suspected_and_stays_pending_until_it_stalls(known: Node) -> None:
    with mining_by_hand(known):
        nonce = int(known.rpc("eth_getTransactionCount", known.accounts[0], "latest"), 16)
        old = follow(known.chain_id, paid(known, nonce=nonce, gasPrice=2 * 10**9))
        old.check()
        assert old.get("nonce", "attempts") == (nonce, 1)
        new = follow(known.chain_id, paid(known, nonce=nonce, gasPrice=20 * 10**9))
        new.check()
        known.mine(2)
        new.check_when_due()
        assert new.status == "confirmed"
        old.check(15)
        old.check(45)
        old.check(75)
        assert not old.wire.get("replacedSuspected"), "its block isn't final yet"
        known.mine(100)
        old.check_when_due(3)
    assert old.get("status", "replacedSuspected", "replacedBy") == (
        "pending",
        True,
        new.wire["hash"],
    )
    old.check(HOUR + 1)
    assert old.get("status", "replacedSuspected") == ("stalled", True)


def test_a_dropped_one_isn_t_suspected_since_its_nonce_is_free(known: Node) -> None:
    with mining_by_hand(known):
        one = follow(known.chain_id, paid(known))
        one.check()
        known.drop(one.wire["hash"])
        known.mine(100)
        one.check_when_due(10)
        assert one.get("status", "replacedSuspected") == ("pending", None)
        one.check(HOUR + 1)
    assert one.get("status", "attempts", "replacedSuspected") == ("stalled", 12, None)


def test_one_that_waits_for_an_earlier_nonce_is_pending_until_that_is_there(known: Node) -> None:
    with mining_by_hand(known):
        nonce = int(known.rpc("eth_getTransactionCount", known.accounts[0], "latest"), 16)
        one = follow(known.chain_id, paid(known, nonce=nonce + 1))
        one.check_when_due(3)
        known.mine(100)
        one.check_when_due(8)
        assert one.get("status", "replacedSuspected", "nonce") == ("pending", None, nonce + 1)
        paid(known, nonce=nonce)
        read_block(known.chain_id, known.mine())
    assert_mined(one, known, "confirmed")


# -- After it has stalled -------------------------------------------------------------------------


def stalled(node: Node) -> Followed:
    one = follow(node.chain_id, paid(node))
    Transaction.objects.filter(object_id=one.object_id).update(attempts=121)
    one.check(HOUR + 15)
    assert one.status == "stalled"
    return one


@pytest.mark.parametrize("by_block", [False, True])
def test_one_that_is_mined_late_stays_stalled_and_says_so(known: Node, by_block: bool) -> None:
    with mining_by_hand(known):
        one = stalled(known)
        height = known.mine()
        if by_block:
            read_block(known.chain_id, height)
        else:
            assert one.due == HOUR + 15 + 600
            one.check_when_due()
    receipt = known.mined(one.wire["hash"])
    assert one.get("status", "blockNumber", "attempts") == ("stalled", None, 122)
    assert one.wire["lateReceipt"] == {
        "status": "confirmed",
        "blockNumber": height,
        "blockHash": receipt["blockHash"],
        "transactionIndex": 0,
        "gasUsed": "21000",
        "effectiveGasPrice": str(int(receipt["effectiveGasPrice"], 16)),
    }


def test_a_late_receipt_of_a_block_that_is_gone_is_looked_at_at_once(known: Node) -> None:
    with mining_by_hand(known):
        one = stalled(known)
        height = known.mine()
        read_block(known.chain_id, height)
        later = one.due
        known.reorg(1)
        monitor.on_reorganisation(known.chain_id, height)
        assert one.due == later, "its block is still there"
        monitor.on_reorganisation(known.chain_id, height - 1)
        assert later is not None
        assert (one.due or 0) < later
        one.check(HOUR + 20)
    assert one.get("status", "lateReceipt") == ("stalled", None)


def test_a_deployment_may_have_late_ones_confirmed(known: Node, settings: object) -> None:
    settings.SERVICE = {**settings.SERVICE, "STALLED_REVIVE": True}  # type: ignore[attr-defined]
    with mining_by_hand(known):
        one = stalled(known)
        known.mine()
        one.check_when_due()
    assert_mined(one, known, "confirmed")


def test_a_stalled_one_is_looked_for_during_a_day_and_no_longer(known: Node) -> None:
    with mining_by_hand(known):
        one = stalled(known)
        before = one.wire["updatedAt"]
        one.check_when_due(2)
        assert one.due == HOUR + 15 + 3 * 600
        one.check(HOUR + 24 * HOUR + 1)
    assert one.due is None
    assert one.get("updatedAt", "attempts") == (before, 122), "nothing was found"
