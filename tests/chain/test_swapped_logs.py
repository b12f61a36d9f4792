"""Two logs of a block have each other's topic, in all that a provider sends. The filter stays the
same, so only the root of the receipts tells, or another provider."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

from chain.indexing.head import indexer
from chain.indexing.repair.audits import audit
from chain.models import Blockchain, ContractEvent, OutboxEntry, Provider
from chain.networks import configuration
from chain.rpc import pool
from tests.chain.indexed_network import listen, network
from tests.chain.lying_network import contents, truth
from tests.chain.rpc.networks import provider
from tests.chain.test_two_providers import check_reads_on, two
from tests.evm.faults import altered, range_limit
from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied

pytestmark = pytest.mark.django_db(transaction=True)


def swap(proxy: Proxy) -> None:
    proxy.on("eth_getLogs", altered(_swapped))
    proxy.on("eth_getBlockReceipts", altered(lambda receipts: [*map(_receipt, receipts or [])]))
    proxy.on("eth_getTransactionReceipt", altered(lambda item: item and _receipt(item)))


def _receipt(receipt: dict[str, Any]) -> dict[str, Any]:
    return {**receipt, "logs": _swapped(receipt["logs"])}


def _swapped(logs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first two logs of each block with each other's last topic."""
    swapped: list[dict[str, Any]] = []
    for _, group in groupby(logs or [], key=lambda log: log["blockHash"]):
        first, *remaining = group
        if remaining:
            second, *remaining = remaining
            topics, other_topics = first["topics"], second["topics"]
            swapped.append({**first, "topics": [*topics[:-1], other_topics[-1]]})
            swapped.append({**second, "topics": [*other_topics[:-1], topics[-1]]})
        else:
            swapped.append(first)
        swapped += remaining
    return swapped


@pytest.mark.parametrize("verify", ["sample", "all"])
def test_an_audit_by_one_provider_changes_nothing_that_is_not_proved(
    node: Node, verify: str
) -> None:
    with two(node, verify=verify) as (world, hostile):
        check_reads_on(world, blocks=10)
        published = OutboxEntry.objects.count()
        swap(hostile)
        Provider.objects.filter(name="honest").update(weight=0)
        Provider.objects.filter(name="hostile").update(weight=10)
        pool.forget()
        audit(world.network_id)
        assert contents(world) == truth(world)
        assert OutboxEntry.objects.count() == published


def change_transactions(proxy: Proxy) -> None:
    """Other hashes of transactions in logs, receipts and lists of blocks alike."""

    def changed(tx_hash: str) -> str:
        return "0x5a" + tx_hash[4:]

    def of_receipt(receipt: dict[str, Any]) -> dict[str, Any]:
        logs = [*map(of_log, receipt["logs"])]
        return {**receipt, "logs": logs, "transactionHash": changed(receipt["transactionHash"])}

    def of_log(log: dict[str, Any]) -> dict[str, Any]:
        return {**log, "transactionHash": changed(log["transactionHash"])}

    def of_block(block: dict[str, Any]) -> dict[str, Any]:
        return {**block, "transactions": [*map(changed, block["transactions"])]}

    for method in ("eth_getBlockByNumber", "eth_getBlockByHash"):
        proxy.on(method, altered(lambda block: block and of_block(block)))
    proxy.on("eth_getLogs", altered(lambda logs: [*map(of_log, logs)]))
    proxy.on("eth_getBlockReceipts", altered(lambda many: many and [*map(of_receipt, many)]))
    proxy.on("eth_getTransactionReceipt", altered(lambda item: item and of_receipt(item)))


@pytest.mark.parametrize("verify", ["sample", "all"])
def test_an_audit_by_one_provider_changes_no_hash_of_a_transaction(node: Node, verify: str) -> None:
    with two(node, verify=verify) as (world, hostile):
        check_reads_on(world, blocks=10)
        change_transactions(hostile)
        Provider.objects.filter(name="honest").update(weight=0)
        Provider.objects.filter(name="hostile").update(weight=10)
        pool.forget()
        audit(world.network_id)
        assert contents(world) == truth(world)


def test_an_audit_corrects_the_hash_of_a_transaction_that_two_providers_return(node: Node) -> None:
    with two(node) as (world, _):
        check_reads_on(world, blocks=5)
        ContractEvent.objects.filter(block_number=world.cursor.number).update(
            transaction_hash="0x" + "5a" * 32
        )
        audit(world.network_id)
        assert contents(world) == truth(world)


@pytest.mark.parametrize("begins", ["with all", "with a sample"])
def test_where_every_block_is_checked_a_provider_that_never_gave_a_right_root_is_refused(
    node: Node, begins: str
) -> None:
    node.mine(3)
    with network(node) as world:
        Blockchain.objects.update(verify="all" if begins == "with all" else "sample")
        listen(world)
        world.follow()
        configuration.change(world.network_id, {"verify": "all"})
        swap(world.proxy)
        was = world.cursor.number
        world.mint(2)
        world.follow()
        assert world.cursor.number == was
        assert "receipts" in str(world.cursor.trouble)
        world.proxy.be_good()
        indexer.forget()
        check_reads_on(world)


@pytest.mark.parametrize("blocks", [10, 17, 40])
def test_a_provider_that_answers_for_few_blocks_is_compared_too(node: Node, blocks: int) -> None:
    node.mine(3)
    with network(node) as world, proxied(node) as hostile:
        provider(world.proxy.url, "honest", world.network_id, weight=0)
        provider(hostile.url, "hostile", world.network_id, weight=10)
        listen(world)
        world.follow()
        world.proxy.on("eth_getLogs", range_limit("alchemy", 10))
        swap(hostile)
        check_reads_on(world, blocks=blocks)
