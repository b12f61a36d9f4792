"""Transactions in blocks that are gone: looked for, moved, pending again; and how certain it is
that the others stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chain import monitor
from chain.core.names import checksummed
from chain.core.transactions.states import PENDING
from chain.models import Block, Blockchain, Cursor, Transaction
from chain.rpc.pool import forget
from chain.rpc.web3_library import eth_account
from tests.chain.monitored import Followed, follow, mining_by_hand, network, paid, read_block
from tests.evm import faults
from tests.evm.node import Node
from tests.evm.proxy import proxied
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db

KEY = "0x" + "11" * 32


@pytest.fixture
def known_node(db: None, node: Node) -> Iterator[Node]:
    """A node whose network the service knows; the test mines."""
    forget()
    network(node.chain_id, node.url)
    with mining_by_hand(node):
        yield node


def raw(node: Node) -> str:
    """A signed transaction, which can be sent to one fork after the other."""
    account = eth_account().Account.from_key(KEY).address
    node.give(account)
    return node.signed(KEY, {"to": checksummed(node.accounts[9]), "gas": 21_000, "value": 1})


def included(node: Node, sent: str) -> Followed:
    """One that a block has ended."""
    transaction = follow(node.chain_id, sent)
    assert read_block(node.chain_id, node.mine()) == 1
    assert transaction.status == "confirmed"
    return transaction


# -- Reorganisations ------------------------------------------------------------------------------


def test_the_same_transaction_in_another_block_is_one_record_moved_in_place(
    known_node: Node,
) -> None:
    signed = raw(known_node)
    before = known_node.snapshot()
    transaction = included(known_node, known_node.send_raw(signed))
    old = transaction.wire
    known_node.revert(before)
    known_node.mine(2)
    again = known_node.send_raw(signed)
    assert again == old["hash"]
    assert monitor.on_reorganisation(known_node.chain_id, old["blockNumber"] - 1) == 1
    assert transaction.status == "confirmed", "until a node has said where it is"
    height = known_node.mine()
    assert read_block(known_node.chain_id, height) == 1
    receipt = known_node.mined(again)
    assert Transaction.objects.count() == 1
    assert transaction.get("status", "blockNumber", "blockHash", "reorgCount", "finality") == (
        "confirmed",
        height,
        receipt["blockHash"],
        1,
        "included",
    )
    assert height == old["blockNumber"] + 2
    assert transaction.due is None
    assert transaction.wire["createdAt"] == old["createdAt"]


def test_it_is_also_found_without_its_block(known_node: Node) -> None:
    signed = raw(known_node)
    before = known_node.snapshot()
    transaction = included(known_node, known_node.send_raw(signed))
    known_node.revert(before)
    known_node.mine(2)
    known_node.send_raw(signed)
    height = known_node.mine()
    monitor.on_reorganisation(known_node.chain_id, transaction.wire["blockNumber"] - 1)
    transaction.check(3600)
    assert transaction.get("status", "blockNumber", "reorgCount", "attempts") == (
        "confirmed",
        height,
        1,
        0,
    )


def test_one_that_is_in_no_block_any_more_is_pending_again(known_node: Node) -> None:
    signed = raw(known_node)
    transaction = included(known_node, known_node.send_raw(signed))
    height = transaction.wire["blockNumber"]
    known_node.reorg(1)
    assert monitor.on_reorganisation(known_node.chain_id, height - 1) == 1
    later = 2 * 3600
    assert transaction.check(later) == 1
    assert transaction.get(
        "status", "blockNumber", "gasUsed", "finality", "reorgCount", "attempts"
    ) == (
        "pending",
        None,
        None,
        "orphaned",
        1,
        0,
    )
    assert transaction.wire["from"] == eth_account().Account.from_key(KEY).address, (
        "what it is stays known"
    )
    assert transaction.due == later + 15
    transaction.check(later + 3600)
    assert transaction.get("status", "attempts") == ("pending", 1), "its hour begins anew"
    known_node.send_raw(signed)
    read_block(known_node.chain_id, known_node.mine())
    assert transaction.get("status", "reorgCount", "finality") == ("confirmed", 1, "included")


def test_a_block_that_comes_back_changes_nothing(known_node: Node) -> None:
    transaction = included(known_node, paid(known_node))
    before = transaction.wire
    monitor.on_reorganisation(known_node.chain_id, before["blockNumber"] - 1)
    transaction.check(60)
    assert transaction.wire == before
    assert transaction.due is None


def test_only_what_lay_above_the_fork_is_looked_for(known_node: Node) -> None:
    below = included(known_node, paid(known_node))
    above = included(known_node, paid(known_node))
    other = follow(known_node.chain_id + 1, "0x" + "cd" * 32)
    assert monitor.on_reorganisation(known_node.chain_id, below.wire["blockNumber"]) == 1
    assert (below.due, above.due is None) == (None, False)
    assert other.due == 0


def test_by_the_letter_of_the_specification_only_other_fields_change(
    known_node: Node, settings: Any
) -> None:
    settings.SERVICE = {**settings.SERVICE, "REORG_REOPEN": False}
    transaction = included(known_node, paid(known_node))
    names = ("status", "blockNumber", "blockHash", "gasUsed", "effectiveGasPrice", "attempts")
    before = transaction.get(*names)
    known_node.reorg(1)
    monitor.on_reorganisation(known_node.chain_id, transaction.wire["blockNumber"] - 1)
    transaction.check(60)
    assert transaction.get(*names) == before
    assert transaction.get("finality", "reorgCount") == ("orphaned", 1)
    assert transaction.due is None


def test_by_the_letter_a_block_that_comes_back_is_its_block_again(
    known_node: Node, settings: Any
) -> None:
    settings.SERVICE = {**settings.SERVICE, "REORG_REOPEN": False}
    transaction = included(known_node, paid(known_node))
    Transaction.objects.update(finality="orphaned")
    assert read_block(known_node.chain_id, transaction.wire["blockNumber"]) == 1
    assert transaction.wire["finality"] == "included"


def test_a_late_receipt_that_a_user_has_brought_along_disturbs_nothing(known_node: Node) -> None:
    sent = paid(known_node)
    body = {"hash": sent, "networkId": known_node.chain_id, "lateReceipt": {"own": 1}}
    Api(MASTER).make("Transaction", **body, status="stalled")
    assert read_block(known_node.chain_id, known_node.mine()) == 1
    (result,) = Api(MASTER).results("Transaction")
    assert (result["status"], result["lateReceipt"]["status"]) == ("stalled", "confirmed")


def test_a_receipt_of_a_block_that_the_reader_never_had_is_found_out(known_node: Node) -> None:
    transaction = follow(known_node.chain_id, paid(known_node))
    height = known_node.mine()
    transaction.check()
    assert transaction.status == "confirmed"
    known_node.reorg(1)
    read_block(known_node.chain_id, height)
    assert transaction.due is not None
    transaction.check(60)
    assert transaction.get("status", "finality") == (PENDING, "orphaned")


def test_receipts_of_another_block_than_the_one_that_is_read_are_left_alone(
    known_node: Node,
) -> None:
    """The chain moves between the header and the receipt."""
    transaction = follow(known_node.chain_id, paid(known_node))
    height = known_node.mine()
    with proxied(known_node) as proxy:
        Blockchain.objects.update(rpc_endpoint=proxy.url)
        forget()
        other = {"blockHash": "0x" + "ee" * 32}
        proxy.on("eth_getTransactionReceipt", faults.altered(lambda results: results | other))
        assert read_block(known_node.chain_id, height) == 0
        proxy.on("eth_getTransactionReceipt", faults.gives(None))
        assert read_block(known_node.chain_id, height) == 0
        proxy.on("eth_getTransactionReceipt", faults.fails(-32000, "no such receipt"))
        assert read_block(known_node.chain_id, height) == 0
        assert transaction.get("status", "attempts") == ("pending", 0)
        proxy.be_good()
        assert read_block(known_node.chain_id, height) == 1


# -- Finality -------------------------------------------------------------------------------------


def test_what_is_included_becomes_safe_and_then_final(known_node: Node) -> None:
    Blockchain.objects.update(finality_depth=10)
    transaction = included(known_node, paid(known_node))
    height = transaction.wire["blockNumber"]
    assert monitor.finalize(known_node.chain_id) == 0
    assert transaction.wire["finality"] == "included"
    known_node.mine(5)
    assert monitor.finalize(known_node.chain_id) == 1
    assert transaction.wire["finality"] == "safe"
    known_node.mine(4)
    assert monitor.finalize(known_node.chain_id) == 0
    known_node.mine(1)
    assert monitor.finalize(known_node.chain_id) == 1
    assert transaction.get("finality", "status", "blockNumber") == (
        "finalized",
        "confirmed",
        height,
    )
    assert monitor.on_reorganisation(known_node.chain_id, 0) == 0, "final is final"
    assert transaction.due is None


def test_the_node_s_tags_are_queried_where_a_network_has_no_depth(known_node: Node) -> None:
    transaction = included(known_node, paid(known_node))
    known_node.mine(100)
    monitor.finalize(known_node.chain_id)
    assert int(known_node.block("finalized")["number"], 16) >= transaction.wire["blockNumber"]
    assert transaction.wire["finality"] == "finalized"


def test_nodes_without_tags_are_judged_by_depth(known_node: Node) -> None:
    with proxied(known_node) as proxy:
        Blockchain.objects.update(rpc_endpoint=proxy.url)
        forget()
        without = faults.only_if(
            lambda call: call.params[0] in ("safe", "finalized"), faults.fails(-32602, "no tags")
        )
        proxy.on("eth_getBlockByNumber", without)
        transaction = included(known_node, paid(known_node))
        known_node.mine(32)
        monitor.finalize(known_node.chain_id)
        assert transaction.wire["finality"] == "safe"
        known_node.mine(32)
        monitor.finalize(known_node.chain_id)
        assert transaction.wire["finality"] == "finalized"


def test_no_one_is_asked_while_nothing_waits(known_node: Node) -> None:
    with proxied(known_node) as proxy:
        Blockchain.objects.update(rpc_endpoint=proxy.url, finality_depth=1)
        forget()
        follow(known_node.chain_id, paid(known_node))
        assert monitor.finalize(known_node.chain_id) == 0
        assert proxy.requests == 0


def test_what_lies_in_another_block_than_the_chain_s_is_never_called_final(
    known_node: Node,
) -> None:
    Blockchain.objects.update(finality_depth=1)
    transaction = included(known_node, paid(known_node))
    known_node.reorg(1)
    known_node.mine(10)
    assert monitor.finalize(known_node.chain_id) == 0
    assert transaction.wire["finality"] == "included"
    transaction.check(60)
    assert transaction.get("status", "finality", "reorgCount") == ("pending", "orphaned", 1)


def test_the_reader_s_blocks_and_heights_spare_the_node(known_node: Node) -> None:
    transaction = included(known_node, paid(known_node))
    height, block_hash = transaction.get("blockNumber", "blockHash")
    common = {"network_id": known_node.chain_id, "timestamp": 0, "parent_hash": "0x"}
    Block.objects.create(number=height, hash=block_hash, **common)
    with proxied(known_node) as proxy:
        Blockchain.objects.update(rpc_endpoint=proxy.url)
        forget()
        observed = {"head": height + 50, "safe": height, "finalized": height}
        Cursor.objects.create(
            network_id=known_node.chain_id,
            looked_at=Transaction.objects.get().created_at,
            **observed,
        )
        assert monitor.finalize(known_node.chain_id) == 1
        assert not proxy.calls.keys() & {"eth_getBlockByNumber", "eth_getTransactionReceipt"}
    assert transaction.wire["finality"] == "finalized"
