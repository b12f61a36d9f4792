"""A node that miscounts an account's transactions doesn't hold up what is sent from it."""

from __future__ import annotations

import pytest

from backend.kernel.errors import ServiceUnavailable
from chain.models import Blockchain, SigningAccount
from tests.chain.rpc.networks import provider
from tests.chain.sending.desk import Desk
from tests.evm.faults import gives
from tests.evm.proxy import Call, Proxy

pytestmark = pytest.mark.django_db

COUNT = "eth_getTransactionCount"


def pending_is(nonce: int, proxy: Proxy) -> None:
    """The node says so, but knows what is in the chain."""

    def hook(call: Call) -> object:
        return hex(nonce) if call.params[1] == "pending" else call.forward()

    proxy.on(COUNT, hook)


def test_what_waits_can_t_be_far_ahead_of_the_chain(desk: Desk, proxy: Proxy) -> None:
    proxy.on(COUNT, gives(hex(1000)), times=1)
    desk.pay()
    assert desk.nonces == [0], "another look"
    proxy.on(COUNT, gives(hex(2**64)), times=1)
    desk.pay()
    assert desk.nonces == [0, 1]
    pending_is(1000, proxy)
    with pytest.raises(ServiceUnavailable):
        desk.pay()
    assert desk.nonces == [0, 1]
    assert SigningAccount.objects.get().next_nonce == 2


@pytest.mark.usefixtures("by_hand")
def test_of_a_jump_the_lowest_counts_that_two_providers_say(desk: Desk, proxy: Proxy) -> None:
    Blockchain.objects.update(rpc_endpoint=None)
    provider(proxy.url, "main", desk.network_id, weight=10)
    provider(desk.node.url, "spare", desk.network_id, weight=0)
    pending_is(40, proxy)
    desk.pay()
    assert desk.nonces == [0]
    pending_is(41, proxy)
    desk.pay()
    assert desk.nonces == [0, 1]


@pytest.mark.usefixtures("by_hand")
def test_a_jump_that_others_confirm_is_made(desk: Desk) -> None:
    for nonce in (0, 1, 2):
        desk.elsewhere(nonce=nonce)
    desk.pay()
    assert desk.nonces == [3]


@pytest.mark.usefixtures("by_hand")
def test_behind_a_lie_the_account_goes_on_where_it_was(desk: Desk, proxy: Proxy) -> None:
    sent = [desk.pay()]
    proxy.on(COUNT, gives(hex(1000)))
    desk.pay()
    assert desk.nonces == [0, 1000], "the chain itself was said to be so far"
    proxy.be_good()
    sent += [desk.pay(), desk.pay()]
    assert desk.nonces == [0, 1000, 1, 2]
    desk.node.mine()
    assert [desk.node.mined(item)["status"] for item in sent] == ["0x1"] * 3
    desk.look_after(30)
    sent.append(desk.pay())
    assert desk.nonces[-1] == 3


@pytest.mark.usefixtures("by_hand")
def test_a_node_that_is_behind_sends_no_one_back(desk: Desk, proxy: Proxy) -> None:
    SigningAccount.objects.update(next_nonce=None)
    proxy.on(COUNT, gives(hex(500)))
    desk.pay()
    desk.pay()
    proxy.on(COUNT, gives(hex(400)), times=2)
    desk.pay()
    assert desk.nonces == [500, 501, 502]
