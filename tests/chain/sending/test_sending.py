"""What the service sends gets into the chain: each action once, one after the other."""

from __future__ import annotations

import pytest

from backend.kernel.errors import Held, ScriptFailed, ServiceUnavailable, UnderMaintenance
from backend.settings.areas.chain import Hidden
from chain.core.names import address_of
from chain.models import Sending, SigningAccount, Transaction
from objects.database import hold, maintenance
from tests.chain.sending.desk import ETHER, Desk, with_settings
from tests.chain.sending.web3signer import signing_service
from tests.evm.faults import altered, fails, gives
from tests.evm.proxy import proxied
from tests.held_instance import begin_hold
from tests.threads import at_once

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


@committed
def test_a_transaction_is_signed_sent_and_followed(desk: Desk) -> None:
    sent = desk.pay(5)
    receipt = desk.node.mined(sent)
    assert (receipt["status"], receipt["from"]) == ("0x1", desk.address.lower())
    (row,) = desk.rows
    assert (row.state, row.nonce, row.hash, row.value) == ("sent", 0, sent, "5")
    record = Transaction.objects.get(hash=sent)
    assert (record.status, record.network_id) == ("pending", str(desk.network_id))
    assert (record.nonce, record.from_address, record.to) == (
        0,
        desk.address,
        address_of(desk.node.accounts[9]),
    )
    desk.look_after()
    assert desk.rows[0].state in ("mined", "final")


@pytest.mark.slow
@committed
def test_fifty_at_once_have_consecutive_nonces(desk: Desk) -> None:
    hashes = at_once([desk.pay] * 50)
    assert len(set(hashes)) == 50
    assert sorted(desk.nonces) == list(range(50))
    for sent in hashes:
        assert desk.node.mined(sent)["status"] == "0x1"
    assert desk.used == 50


def test_what_a_contract_refuses_is_not_sent(desk: Desk) -> None:
    gem = desk.node.deployed("Gem")
    with pytest.raises(ScriptFailed, match="The contract refuses: boom"):
        desk.pay(0, to=gem.address, data=gem.data("boom"))
    assert desk.rows == []
    assert not SigningAccount.objects.exists()


def test_what_the_account_cannot_pay_is_not_sent(desk: Desk) -> None:
    with pytest.raises(ScriptFailed, match=r"(?i)insufficient|hasn't enough"):
        desk.pay(11 * ETHER)
    assert desk.rows == []


def test_what_costs_more_than_the_cap_is_not_sent(desk: Desk) -> None:
    desk.node.rpc("anvil_setNextBlockBaseFeePerGas", hex(3 * 10**9))
    desk.node.mine()
    with (
        with_settings(MAX_FEE_GWEI={None: 10**9}),
        pytest.raises(ScriptFailed, match="the cap is 1 gwei"),
    ):
        desk.pay()
    assert desk.rows == []
    desk.node.rpc("anvil_setNextBlockBaseFeePerGas", hex(10**9))
    desk.node.mine()


def test_an_older_network_is_paid_by_its_gas_price(desk: Desk) -> None:
    def older(block: dict[str, object]) -> dict[str, object]:
        return {name: value for name, value in block.items() if name != "baseFeePerGas"}

    price = int(desk.node.rpc("eth_gasPrice"), 16)
    with proxied(desk.node) as proxy:
        desk.behind(proxy.url)
        proxy.on("eth_getBlockByNumber", altered(older))
        sent = desk.pay()
        assert desk.node.mined(sent)["type"] == "0x0"
        desk.look_after(200)
    assert (desk.rows[0].max_fee, desk.rows[0].priority_fee) == (str(price * 11 // 10), None)


def test_fees_are_found_where_there_is_no_history_of_them(desk: Desk) -> None:
    with proxied(desk.node) as proxy:
        desk.behind(proxy.url)
        proxy.on("eth_feeHistory", fails(-32601, "the method eth_feeHistory does not exist"))
        proxy.on("eth_maxPriorityFeePerGas", gives(hex(7)))
        desk.pay()
        proxy.on("eth_maxPriorityFeePerGas", fails(-32601, "method not found"))
        desk.pay()
    assert [row.priority_fee for row in desk.rows] == ["7", str(10**9)]


def test_a_signer_that_fails_takes_no_nonce(desk: Desk) -> None:
    with (
        signing_service(desk.key) as service,
        with_settings(SIGNER_PRIVATE_KEY={}, SIGNER_URL={None: Hidden(service.url)}),
    ):
        desk.pay()
        service.also = b"\x00"
        with pytest.raises(ServiceUnavailable, match="signed something else"):
            desk.pay()
        service.also = b""
        desk.pay()
    assert desk.nonces == [0, 1]


def test_a_network_without_a_signer_sends_nothing(desk: Desk) -> None:
    with (
        with_settings(SIGNER_PRIVATE_KEY={}),
        pytest.raises(ScriptFailed, match="No signer is configured for network 31337"),
    ):
        desk.pay()


def test_maintenance_mode_refuses_what_is_new(desk: Desk) -> None:
    maintenance.on()
    try:
        with pytest.raises(UnderMaintenance):
            desk.pay()
    finally:
        maintenance.off()
    assert desk.rows == []


def test_a_network_that_is_away_is_503(desk: Desk) -> None:
    desk.behind("http://127.0.0.1:9")
    with pytest.raises(ServiceUnavailable, match="Network 31337 can't be reached"):
        desk.pay()
    assert desk.rows == []


@committed
def test_nonces_go_on_from_what_the_account_did_elsewhere(desk: Desk) -> None:
    desk.pay()
    for _ in range(2):
        desk.node.mined(desk.elsewhere())
    desk.pay()
    assert desk.nonces == [0, 3]
    assert SigningAccount.objects.get().next_nonce == 4


def test_a_chain_that_was_restarted_takes_the_same_again(desk: Desk) -> None:
    desk.node.mined(desk.pay())
    desk.node.mine(100)
    desk.look_after(30)
    assert desk.states == ["final"]
    desk.node.rpc("anvil_reset")
    desk.node.give(desk.address)
    SigningAccount.objects.all().delete()
    assert desk.node.mined(desk.pay())["status"] == "0x1"
    assert desk.states == ["sent"]


def test_the_key_is_nowhere_but_in_the_settings(desk: Desk) -> None:
    desk.pay()
    for row in [*Sending.objects.values_list(), *SigningAccount.objects.values_list()]:
        assert desk.key not in repr(row)


@committed
def test_a_held_instance_signs_and_sends_nothing(desk: Desk) -> None:
    """The account may be that of the instance that was backed up, which sends as well."""
    with proxied(desk.node) as proxy:
        desk.behind(proxy.url)
        proxy.on("eth_sendRawTransaction", fails(-32000, "busy"))
        desk.pay(5)
        begin_hold()
        with pytest.raises(Held, match="script/manage resume"):
            desk.pay(5)
        before = proxy.requests
        desk.look_after(60)
        assert (len(desk.rows), proxy.requests) == (1, before)
        proxy.be_good()
        hold.release()
        desk.look_after(60)
        assert desk.states == ["sent"]
