"""Blocks of the past that a provider makes up whole: they don't link to the chain that is known."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from backend.kernel.json_types import JsonObject
from chain.core.blocks.hashes import hash_of
from chain.core.blocks.receipts import root_of
from chain.core.node import Header, LoggedReceipt
from chain.indexing.head import indexer
from chain.indexing.history import proofs
from chain.indexing.history.backfill import advance
from chain.indexing.history.progress import Lost
from chain.models import Backfill, Block, Blockchain, ContractEvent, Cursor, ProvedBlock
from chain.rpc import pool
from tests.chain.indexed_network import Network, listen, network
from tests.chain.lying_network import events_on_chain, events_shown
from tests.chain.rpc.networks import provider
from tests.evm.liar import hex_bloom
from tests.evm.node import Node
from tests.evm.proxy import Call, Proxy, proxied

pytestmark = pytest.mark.django_db(transaction=True)

BLOCKS = 200


class Forger:
    """Has its own blocks from ``first`` to ``last``: other logs, with receipts, filters, roots and
    hashes that fit, each the parent of the next. Everything else it says is true."""

    def __init__(self, node: Node, proxy: Proxy, first: int, last: int) -> None:
        self._blocks: dict[str, JsonObject] = {}
        self._receipts: dict[str, list[JsonObject]] = {}
        self._first, self._last = first, last
        parent = None
        for height in range(first, last + 1):
            block = self._forged(node, height, parent)
            parent = block["hash"]
            for key in (hex(height), block["hash"]):
                self._blocks[key] = block
                self._receipts[key] = self._receipts[block["hash"]]
        proxy.on("eth_getBlockByNumber", self._block)
        proxy.on("eth_getBlockByHash", self._block)
        proxy.on("eth_getBlockReceipts", self._receipts_of)
        proxy.on("eth_getLogs", self._logs)

    def _forged(self, node: Node, height: int, parent: str | None) -> JsonObject:
        block = node.rpc("eth_getBlockByNumber", hex(height), False)
        receipts = node.rpc("eth_getBlockReceipts", hex(height))
        for receipt in receipts:
            for log in receipt["logs"]:
                log["topics"] = [*log["topics"][:-1], log["topics"][-1][:-4] + "beef"]
            receipt["logsBloom"] = hex_bloom(receipt["logs"])
        block["receiptsRoot"] = root_of(msgspec.convert(receipts, list[LoggedReceipt]))
        block["logsBloom"] = hex_bloom([log for item in receipts for log in item["logs"]])
        block["parentHash"] = parent or block["parentHash"]
        block["hash"] = hash_of(msgspec.convert(block, Header))
        for receipt in receipts:
            for item in (receipt, *receipt["logs"]):
                item["blockHash"] = block["hash"]
        self._receipts[block["hash"]] = receipts
        return block

    def _block(self, call: Call) -> Any:
        return self._blocks.get(call.params[0]) or call.forward()

    def _receipts_of(self, call: Call) -> Any:
        response = self._receipts.get(call.params[0])
        return call.forward() if response is None else response

    def _logs(self, call: Call) -> Any:
        query = call.params[0]
        if "blockHash" in query:
            keys = [query["blockHash"]] if query["blockHash"] in self._blocks else []
            return self._logs_in(keys) if keys else call.forward()
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        heights = range(max(first, self._first), min(last, self._last) + 1)
        true = [log for log in call.forward() if int(log["blockNumber"], 16) not in heights]
        false = self._logs_in([hex(height) for height in heights])
        return sorted(true + false, key=lambda log: int(log["blockNumber"], 16))

    def _logs_in(self, keys: list[str]) -> list[JsonObject]:
        return [log for key in keys for item in self._receipts[key] for log in item["logs"]]


def fill(world: Network, count: int = BLOCKS) -> int:
    """So many blocks with an event each, which become final and are in the past; the first one."""
    begin = world.node.head + 1
    for _ in range(count):
        world.send()
        world.node.mine()
    world.node.mine(130)
    world.follow()
    indexer.forget()
    world.follow()
    assert (world.cursor.finalized or 0) >= begin + count
    return begin


def backfill(world: Network, *, times: int = 3) -> None:
    for _ in range(times):
        Backfill.objects.update(paused_until=None)
        advance(world.network_id, 5.0)


def expected(world: Network) -> Any:
    return events_on_chain(world.gem, 0, world.node.head)


@pytest.mark.parametrize(
    ("first", "last"), [(0, 0), (13, 13), (59, 59), (60, 60), (61, 61), (0, 130), (100, 199)]
)
@pytest.mark.slow
def test_a_forged_past_is_never_stored_where_every_block_is_checked(
    node: Node, first: int, last: int
) -> None:
    with network(node) as world:
        Blockchain.objects.update(verify="all")
        begin = fill(world)
        Forger(node, world.proxy, begin + first, begin + last)
        listen(world)
        world.follow()
        backfill(world)
        assert not ContractEvent.objects.exists()
        assert "isn't the parent of the next" in Backfill.objects.get().trouble
        assert world.cursor.contradictions > 0
        world.proxy.be_good()
        backfill(world)
        assert Backfill.objects.get().done_at is not None
        assert events_shown(world.network_id) == expected(world)


@pytest.mark.slow
def test_another_provider_is_used_for_a_past_that_one_makes_up(node: Node) -> None:
    with network(node) as world, proxied(node) as hostile:
        Blockchain.objects.update(verify="all")
        begin = fill(world)
        provider(hostile.url, "hostile", world.network_id, weight=10)
        provider(world.proxy.url, "honest", world.network_id, weight=0)
        pool.forget()
        Forger(node, hostile, begin + 20, begin + 20)
        listen(world)
        world.follow()
        backfill(world)
        assert Backfill.objects.get().done_at is not None
        assert events_shown(world.network_id) == expected(world)


@pytest.mark.slow
def test_a_forgery_that_begins_when_the_headers_are_proved_is_refused(node: Node) -> None:
    with network(node) as world:
        Blockchain.objects.update(verify="all")
        begin = fill(world)
        listen(world)
        world.follow()
        final = world.cursor.finalized or 0
        scheme = indexer.Scheme.of("all")
        assert proofs.prove_blocks(world.network_id, 0, final, final, scheme, float("inf"))
        Forger(node, world.proxy, begin, begin + 150)
        backfill(world)
        assert not ContractEvent.objects.filter(block_number__range=(begin, begin + 150)).exists()
        world.proxy.be_good()
        backfill(world)
        assert events_shown(world.network_id) == expected(world)


def test_nothing_is_proved_by_a_block_that_was_reverted_meanwhile(node: Node) -> None:
    """An operator has unwound the network below it while the headers were read."""
    with network(node) as world:
        Blockchain.objects.update(verify="all")
        fill(world)
        final = world.cursor.finalized or 0

        def revert(call: Call) -> Any:
            Block.objects.update(canonical=False)
            Cursor.objects.update(hash="0x" + "ab" * 32)
            return call.forward()

        world.proxy.on("eth_getBlockByNumber", revert, times=1)
        with pytest.raises(Lost):
            proofs.prove_blocks(
                world.network_id, 0, final, final, indexer.Scheme.of("all"), float("inf")
            )
        assert not ProvedBlock.objects.exists()


@pytest.mark.slow
def test_headers_are_proved_in_parts_and_once(node: Node) -> None:
    """Each call goes on where the one before has ended; what is proved isn't read again."""
    with network(node) as world:
        Blockchain.objects.update(verify="all")
        fill(world, 700)
        final = world.cursor.finalized or 0
        scheme = indexer.Scheme.of("all")

        read: list[str] = []

        def counting(call: Call) -> Any:
            read.append(call.params[0])
            return call.forward()

        def prove(first: int, last: int, end: float) -> tuple[bool, int]:
            read.clear()
            is_done = proofs.prove_blocks(world.network_id, first, last, final, scheme, end)
            return is_done, len(read)

        world.proxy.on("eth_getBlockByNumber", counting)

        assert prove(0, 300, 0.0) == (False, 0)
        assert prove(0, 300, float("inf"))[0]
        heights = {*ProvedBlock.objects.values_list("number", flat=True)}
        assert {0, 64, 128, 192, 256, 300} <= heights <= {*range(0, final, 64), 300}
        assert prove(0, 300, 0.0) == (True, 0)
        assert prove(130, 200, 0.0) == (True, 0)
        ProvedBlock.objects.filter(number__in=(64, 128)).delete()
        is_done, requested = prove(0, 300, float("inf"))
        assert is_done
        assert requested <= 193
        assert {64, 128} <= {*ProvedBlock.objects.values_list("number", flat=True)}
