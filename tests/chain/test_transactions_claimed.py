"""Registering a hash on the wrong network doesn't block it on the right one."""

from __future__ import annotations

import pytest

from chain import monitor
from chain.models import Blockchain, Transaction
from tests.chain.monitored import UNKNOWN, follow, mining_by_hand, network, paid
from tests.evm.faults import gives
from tests.evm.node import Node
from tests.evm.proxy import proxied
from tests.people import sign_up
from tests.rest import MASTER, Api, Reply

pytestmark = pytest.mark.django_db

ELSEWHERE = 5


@pytest.fixture
def here(node: Node) -> int:
    """The network of the node; another one is followed as well, whose node is away."""
    network(node.chain_id, node.url)
    network(ELSEWHERE, None)
    return node.chain_id


def monitored(caller: Api, network_id: int, tx_hash: str) -> Reply:
    return caller.post("/functions/monitorTransaction", {"networkId": network_id, "hash": tx_hash})


def test_a_squatter_s_record_is_moved_to_where_the_transaction_is(here: int, node: Node) -> None:
    squatter, owner = sign_up("squatter"), sign_up("owner")
    with mining_by_hand(node):
        sent = paid(node)
        begun = monitored(squatter, ELSEWHERE, sent)
        assert begun.json["result"]["networkId"] == str(ELSEWHERE)
        Transaction.objects.update(status="stalled", attempts=122, missing_checks=7)
        result = monitored(owner, here, sent).json["result"]
        monitor.check_due(here)
        node.mine()
    assert result["objectId"] == begun.json["result"]["objectId"]
    assert [result[name] for name in ("networkId", "status", "attempts")] == [
        str(here),
        "pending",
        0,
    ]
    node.mined(sent)
    row = Transaction.objects.get()
    monitor.check_due(here, now=round((row.created_at.timestamp() + 3600) * 1000))
    assert Transaction.objects.get().status == "confirmed"


def test_a_hash_that_a_network_does_not_know_is_not_moved_to_it(here: int) -> None:
    owner, squatter = sign_up("owner"), sign_up("squatter")
    assert monitored(owner, ELSEWHERE, UNKNOWN).status == 200
    assert monitored(squatter, here, UNKNOWN).error == (400, 137)
    assert Transaction.objects.get().network_id == str(ELSEWHERE)


def test_what_is_on_two_networks_is_followed_where_it_was_named_first(
    here: int, node: Node
) -> None:
    """Another chain's node may know what was signed for any chain."""
    transaction = follow(here, paid(node))
    transaction.check()
    assert transaction.status == "confirmed"
    with proxied(node) as replayed:
        replayed.on("eth_chainId", gives(hex(ELSEWHERE)))
        Blockchain.objects.filter(network_id=ELSEWHERE).update(rpc_endpoint=replayed.url)
        refused = monitored(sign_up("owner"), ELSEWHERE, transaction.row.hash or "")
        assert refused.error == (400, 137)
        assert f"network {here}" in refused.json["error"]
        with mining_by_hand(node):
            waiting = follow(here, paid(node))
            waiting.check()
            again = monitored(Api(MASTER), ELSEWHERE, waiting.row.hash or "")
        assert again.error == (400, 137), "a node of its network has known it"


def test_what_the_service_sends_itself_is_of_the_network_it_was_signed_for(here: int) -> None:
    monitored(sign_up("squatter"), ELSEWHERE, UNKNOWN)
    object_id = monitor.start(here, UNKNOWN)
    row = Transaction.objects.get(object_id=object_id)
    assert (row.network_id, row.status) == (str(here), "pending")
    assert row.next_check_at is not None
