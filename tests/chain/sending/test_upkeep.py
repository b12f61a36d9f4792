"""A signed transaction is monitored until it is final, through every kind of failure."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from backend.kernel.errors import ScriptFailed
from chain.rpc import pool
from tests.chain.rpc.networks import provider
from tests.chain.sending.desk import Desk, with_settings
from tests.evm.faults import Dropped, fails, gives
from tests.evm.proxy import Call, Proxy, RpcError, proxied
from tests.other_process import ROOT, database_url
from tests.threads import at_once

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)

SEND = "eth_sendRawTransaction"


def lost(call: Call) -> None:
    raise Dropped


def good_again(proxy: Proxy) -> None:
    """It errs no more, and the service has forgotten that it did."""
    proxy.be_good()
    pool.forget()


# -- Getting it there -----------------------------------------------------------------------------


@committed
@pytest.mark.slow
def test_a_process_that_is_killed_before_it_hands_over_loses_nothing(
    desk: Desk, proxy: Proxy
) -> None:
    here, over = threading.Event(), threading.Event()

    def hang(call: Call) -> None:
        here.set()
        over.wait(60)
        raise Dropped

    proxy.on(SEND, hang)
    code = (
        "from chain.sending.outgoing import send;"
        f"send({desk.network_id}, {desk.node.accounts[9]!r}, '0x', value=7, purpose='test')"
    )
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        f"SIGNER_PRIVATE_KEY_{desk.network_id}": desk.key,
        "LOG_LEVEL": "ERROR",
    }
    process = subprocess.Popen(
        [sys.executable, "manage.py", "shell", "-c", code], cwd=ROOT, env=environment
    )
    try:
        assert here.wait(60)
    finally:
        process.kill()
        process.wait(30)
        over.set()
    (row,) = desk.rows
    assert (row.state, desk.used) == ("signed", 0)
    assert desk.record(row.hash).status == "pending"
    good_again(proxy)
    desk.look_after()
    assert desk.states == ["signed"], "the process that has signed it may still be at it"
    desk.look_after(30)
    assert desk.node.mined(row.hash)["status"] == "0x1"
    desk.look_after(30)
    assert desk.states == ["mined"]
    assert desk.used == 1


def test_an_answer_that_gets_lost_is_requested_again(desk: Desk, proxy: Proxy) -> None:
    def heard_and_lost(call: Call) -> None:
        call.forward()
        raise Dropped

    proxy.on(SEND, heard_and_lost)
    sent = desk.pay()
    assert desk.node.mined(sent)["status"] == "0x1", "it was heard"
    good_again(proxy)
    desk.look_after(30)
    assert desk.states == ["mined"]
    assert desk.used == 1


@pytest.mark.usefixtures("by_hand")
def test_what_the_node_has_forgotten_is_handed_over_again(desk: Desk) -> None:
    sent = desk.pay()
    desk.look_after(30)
    assert desk.states == ["sent"], "known already is as good as taken"
    desk.node.drop(sent)
    desk.look_after(30)
    desk.node.mine()
    desk.look_after(30)
    assert (desk.states, desk.rows[0].block_number) == (["mined"], desk.node.head)


@pytest.mark.usefixtures("by_hand")
def test_what_a_reorganisation_has_removed_is_brought_in_again(desk: Desk) -> None:
    desk.node.mine(3)
    sent = desk.pay()
    desk.node.mine()
    desk.look_after(30)
    assert desk.states == ["mined"]
    desk.node.reorg(1)
    desk.look_after(30)
    assert desk.states == ["sent"]
    desk.node.mine()
    assert desk.node.mined(sent)["status"] == "0x1"
    desk.look_after(30)
    assert desk.states == ["mined"]


def test_it_is_left_alone_when_it_is_final(desk: Desk, proxy: Proxy) -> None:
    desk.node.mined(desk.pay())
    desk.node.mine(100)
    desk.look_after(30)
    assert desk.states == ["final"]
    proxy.forget_counts()
    desk.look_after(30)
    assert proxy.requests == 0


# -- Nonces ---------------------------------------------------------------------------------------


@committed
def test_the_nonce_of_what_is_refused_goes_to_the_next(desk: Desk, proxy: Proxy) -> None:
    proxy.on(SEND, fails(-32000, "insufficient funds for gas * price + value"), times=1)
    with pytest.raises(ScriptFailed, match="insufficient funds"):
        desk.pay(1)
    sent = desk.pay(2)
    assert (desk.nonces, desk.states) == ([0, 0], ["refused", "sent"])
    desk.node.mined(sent)
    desk.look_after(30)
    assert desk.states == ["refused", "mined"]
    assert desk.record(desk.rows[0].hash).replaced_by == sent


@committed
def test_what_was_refused_may_be_tried_again(desk: Desk, proxy: Proxy) -> None:
    proxy.on(SEND, fails(-32000, "insufficient funds for gas * price + value"), times=1)
    with pytest.raises(ScriptFailed):
        desk.pay()
    assert desk.node.mined(desk.pay())["status"] == "0x1"
    assert (desk.nonces, desk.states) == ([0], ["sent"])


@committed
def test_a_nonce_that_others_wait_behind_is_used_up(desk: Desk, proxy: Proxy) -> None:
    later: list[str] = []

    def refused_after_another_was_sent(call: Call) -> None:
        at_once([lambda: later.append(desk.pay(2))])
        raise RpcError(-32000, "insufficient funds for gas * price + value")

    proxy.on(SEND, refused_after_another_was_sent, times=1)
    with pytest.raises(ScriptFailed):
        desk.pay(1)
    assert (desk.nonces, desk.states) == ([0, 1], ["refused", "sent"])
    assert desk.used == 0, "the second one waits for the first"
    desk.look_after(30)
    assert desk.node.mined(later[0])["status"] == "0x1"
    filler = desk.rows[-1]
    assert (filler.nonce, filler.to, filler.value, filler.purpose) == (0, desk.address, "0", "fill")
    desk.look_after(30)
    assert desk.states == ["refused", "mined", "mined"]
    assert desk.used == 2


@pytest.mark.usefixtures("by_hand")
def test_a_nonce_whose_transaction_from_elsewhere_was_dropped_is_used_up(desk: Desk) -> None:
    elsewheres = [desk.elsewhere(nonce=nonce) for nonce in (0, 1)]
    sent = [desk.pay(), desk.pay()]
    assert desk.nonces == [2, 3]
    desk.look_after(600)
    assert desk.nonces == [2, 3], "theirs still wait"
    for other in elsewheres:
        desk.node.rpc("anvil_dropTransaction", other)
    desk.look_after(60)
    assert desk.nonces == [2, 3, 0, 1]
    assert {row.purpose for row in desk.rows[2:]} == {"fill"}
    desk.node.mine()
    assert [desk.node.mined(item)["status"] for item in sent] == ["0x1", "0x1"]
    desk.look_after(60)
    assert desk.states == ["mined"] * 4


@committed
def test_a_nonce_used_elsewhere_at_the_same_moment_is_said_at_once(
    desk: Desk, proxy: Proxy
) -> None:
    def somebody_is_first(call: Call) -> None:
        desk.node.mined(desk.elsewhere())
        call.forward()

    proxy.on(SEND, somebody_is_first, times=1)
    with pytest.raises(ScriptFailed, match="used elsewhere"):
        desk.pay()
    assert desk.states == ["lost"]
    desk.node.mined(desk.pay())
    assert desk.nonces == [0, 1]


def test_an_action_whose_nonce_was_used_elsewhere_is_never_done_by_another_nonce(
    desk: Desk, proxy: Proxy
) -> None:
    proxy.on(SEND, lost)
    desk.pay()
    good_again(proxy)
    desk.node.mined(desk.elsewhere())
    desk.look_after(30)
    desk.look_after(60)
    assert desk.states == ["signed"], "a block that may go away proves nothing"
    desk.node.mine(100)
    desk.look_after(1)
    assert desk.states == ["signed"], "one look proves nothing"
    desk.look_after(31)
    assert desk.states == ["lost"]
    assert desk.used == 1


def test_one_of_two_providers_alone_ends_nothing(desk: Desk, proxy: Proxy) -> None:
    provider(proxy.url, "first", desk.network_id, weight=10)
    with proxied(desk.node) as second:
        provider(second.url, "second", desk.network_id, weight=0)
        second.refuse()
        proxy.on(SEND, lost)
        desk.pay()
        proxy.be_good()
        desk.node.mine(100)
        proxy.on("eth_getTransactionCount", gives("0x1"))
        for _ in range(3):
            desk.look_after(60)
        assert desk.states == ["signed"]


def test_a_receipt_that_comes_late_is_no_loss(desk: Desk, proxy: Proxy) -> None:
    desk.node.mined(desk.pay())
    desk.node.mine(100)
    proxy.on("eth_getTransactionReceipt", lambda call: None, times=1)
    desk.look_after(30)
    assert desk.states == ["sent"]
    desk.look_after(60)
    assert desk.states == ["final"]


# -- Higher fees ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("by_hand")
def test_what_is_stuck_is_replaced_with_higher_fees_and_followed(desk: Desk) -> None:
    old = desk.pay()
    desk.look_after(100)
    assert len(desk.rows) == 1
    desk.look_after(100)
    first, second = desk.rows
    assert (first.state, second.state, second.nonce) == ("replaced", "sent", first.nonce)
    assert int(second.max_fee) >= int(first.max_fee) * 1.125
    assert int(second.priority_fee or 0) >= int(first.priority_fee or 0) * 1.125
    assert desk.record(old).replaced_by == second.hash
    assert desk.record(second.hash).status == "pending"
    desk.node.mine()
    assert desk.node.receipt(second.hash)
    assert desk.node.receipt(old) is None
    desk.look_after(30)
    assert desk.states == ["replaced", "mined"]


@pytest.mark.usefixtures("by_hand")
def test_the_one_that_was_replaced_may_be_the_one_that_is_mined(desk: Desk, proxy: Proxy) -> None:
    old = desk.pay()
    proxy.on(SEND, lost)
    proxy.on(SEND, lambda call: call.forward(), times=1)
    desk.look_after(200)
    assert desk.states == ["replaced", "signed"]
    desk.node.mine()
    good_again(proxy)
    desk.look_after(30)
    assert desk.states == ["mined", "replaced"]
    new = desk.rows[1].hash
    assert (desk.record(old).replaced_by, desk.record(new).replaced_by) == (None, old)


@pytest.mark.usefixtures("by_hand")
def test_the_cap_holds_for_replacements(desk: Desk) -> None:
    desk.pay()
    fee = int(desk.rows[0].max_fee)
    with with_settings(MAX_FEE_GWEI={None: fee + 1}):
        desk.look_after(200)
    assert desk.states == ["sent"]
    assert "the cap is" in (desk.rows[0].trouble or "")


@pytest.mark.usefixtures("by_hand")
@committed
def test_two_rounds_at_once_replace_once(desk: Desk) -> None:
    desk.pay()
    desk.let_pass(200)
    at_once([desk.look_after] * 4)
    assert desk.states == ["replaced", "sent"]


@pytest.mark.usefixtures("by_hand")
def test_those_behind_a_stuck_one_are_not_stuck(desk: Desk) -> None:
    for _ in range(3):
        desk.pay()
    desk.look_after(200)
    assert sorted(desk.nonces) == [0, 0, 1, 2]
    desk.node.mine()
    desk.look_after(30)
    assert sorted(desk.states) == ["mined", "mined", "mined", "replaced"]


# -- Receipts that are not true -------------------------------------------------------------------


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize(
    "lie",
    [
        {"blockNumber": "0x0"},
        {"blockNumber": "0x1"},
        {"blockNumber": hex(10**9)},
        {"blockNumber": hex(2**70)},
        {"blockHash": f"0x{'ab' * 32}"},
        "an older block",
    ],
    ids=str,
)
def test_a_receipt_that_is_not_of_the_chain_s_blocks_ends_nothing(
    desk: Desk, proxy: Proxy, lie: dict[str, str] | str
) -> None:
    desk.node.mine(70)
    sent = desk.pay()
    old = desk.node.rpc("eth_getBlockByNumber", "0x2", False)
    if isinstance(lie, str):
        lie = {"blockNumber": old["number"], "blockHash": old["hash"]}
    message = {
        "transactionHash": sent,
        "blockHash": old["hash"],
        "blockNumber": "0x2",
        "transactionIndex": "0x0",
        "gasUsed": "0x5208",
        "from": desk.address,
        "status": "0x1",
        **lie,
    }
    proxy.on("eth_getTransactionReceipt", lambda call: message)
    desk.look_after(30)
    assert (desk.states, desk.rows[0].block_number) == (["sent"], None)
    good_again(proxy)
    desk.node.mine()
    desk.look_after(30)
    assert (desk.states, desk.rows[0].block_number) == (["mined"], desk.node.head)
