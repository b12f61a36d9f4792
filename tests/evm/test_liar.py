"""What each lie of a lying node does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import msgspec
import pytest

from chain.core.blocks.bloom import bits_of
from chain.core.blocks.hashes import has_own_hash
from chain.core.node import Header
from tests.evm import faults
from tests.evm.liar import KINDS, Liar, Lie, lying
from tests.evm.node import Node, running_node

BLOCKS = 12  # with two logs each


@pytest.fixture(scope="module")
def chain() -> Iterator[Node]:
    with running_node() as node:
        gem = node.deployed("Gem")
        node.automine(False)
        for _ in range(BLOCKS):
            gem.transact("spam", 2, gas=5_000_000)
            node.mine()
        yield node


@pytest.fixture
def liar(chain: Node) -> Iterator[Liar]:
    with lying(chain, seed=7) as liar:
        yield liar


def ask(liar: Liar, method: str, *params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return httpx.post(liar.proxy.url, json=body).json()["result"]


def logs(liar: Liar, first: int = 0, last: int = 100, **more: Any) -> list[dict[str, Any]]:
    query = {"fromBlock": hex(first), "toBlock": hex(last), **more}
    answer: list[dict[str, Any]] = ask(liar, "eth_getLogs", query)
    return answer


def logs_of(liar: Liar, block_hash: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = ask(liar, "eth_getLogs", {"blockHash": block_hash})
    return answer


def block(liar: Liar, number: int | str) -> dict[str, Any]:
    which = hex(number) if isinstance(number, int) else number
    answer: dict[str, Any] = ask(liar, "eth_getBlockByNumber", which, False)
    return answer


def heights(results: list[dict[str, Any]]) -> set[int]:
    return {int(log["blockNumber"], 16) for log in results}


def test_without_lies_it_is_honest(liar: Liar, chain: Node) -> None:
    assert logs(liar) == chain.logs()
    assert block(liar, 3) == chain.block(3)
    assert ask(liar, "eth_chainId") == hex(chain.chain_id)
    assert liar.lies_about() == set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_rate_of_0_and_blocks_elsewhere_leave_the_truth(
    liar: Liar, chain: Node, kind: Any
) -> None:
    for lie in (Lie(kind, rate=0), Lie(kind, first=1000), Lie(kind, last=-1)):
        liar.lie(lie)
        assert logs(liar) == chain.logs()
        assert block(liar, 3) == chain.block(3)
        assert ask(liar, "eth_chainId") == hex(chain.chain_id)
    assert liar.lies_about() == set()


def test_dropped_logs_are_missing_by_range_and_by_hash(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("drop", first=4, last=6))
    assert heights(chain.logs()) - heights(logs(liar)) == {4, 5, 6}
    wrong = chain.block(5)["hash"]
    assert logs_of(liar, wrong) == []
    assert wrong in liar.lies_about("drop")
    assert len(liar.lies_about()) == 3


@pytest.mark.slow
def test_a_rate_is_a_share_of_the_logs_and_the_same_ones_each_time(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("drop", rate=0.4))
    remaining = logs(liar)
    assert 0 < len(remaining) < len(chain.logs())
    assert logs(liar) == remaining
    singly = [log for n in range(chain.head + 1) for log in logs(liar, n, n)]
    assert singly == remaining
    with lying(chain, Lie("drop", rate=0.4), seed=7) as same:
        assert logs(same) == remaining
    with lying(chain, Lie("drop", rate=0.4), seed=8) as other:
        assert logs(other) != remaining


def test_inconsistent_lies_are_drawn_for_each_request(liar: Liar) -> None:
    liar.lie(Lie("drop", rate=0.5, is_consistent=False))
    answers = [str(logs(liar)) for _ in range(8)]
    assert len({*answers}) > 1


def test_invented_logs_pass_for_logs_of_their_block(liar: Liar, chain: Node) -> None:
    logs(liar)  # of which one is the model
    liar.lie(Lie("invent", first=5, last=5))
    [false] = [log for log in logs(liar) if log not in chain.logs()]
    assert false["blockHash"] == chain.block(5)["hash"]
    assert int(false["logIndex"], 16) == 2
    assert false["address"] == chain.logs()[0]["address"]
    assert false["transactionHash"] == chain.block(5)["transactions"][-1]
    assert false in logs_of(liar, chain.block(5)["hash"])
    assert false in logs(liar, 5, 5)
    assert false not in logs(liar, 6, 7)
    assert false not in logs(liar, 5, 5, address="0x" + "00" * 20)
    assert len(logs(liar, 5, 5, topics=[false["topics"][0]])) == 3


def test_changed_logs_have_other_data_in_the_same_place(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("change", first=3, last=3))
    for true, false in zip(chain.logs(3, 3), logs(liar, 3, 3), strict=True):
        names = {name for name in true if true[name] != false[name]}
        assert names == ({"data"} if len(true["data"]) > 2 else {"topics"})
        assert {*map(len, true["topics"])} == {*map(len, false["topics"])}
        assert len(true["data"]) == len(false["data"])
    assert logs(liar, 3, 3) == logs(liar, 3, 3)
    assert logs(liar, 4, 4) == chain.logs(4, 4)


def test_the_last_topic_alone_is_changed(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("retopic"))
    changed = 0
    for true, false in zip(chain.logs(), logs(liar), strict=True):
        assert true["topics"][0] == false["topics"][0]
        assert {**true, "topics": 0} == {**false, "topics": 0}
        changed += true["topics"] != false["topics"]
    assert changed == sum(len(log["topics"]) > 1 for log in chain.logs())
    assert changed > 0


def test_reordered_logs_have_the_index_of_another(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("reorder", first=6, last=6))
    first, second = chain.logs(6, 6)
    assert logs(liar, 6, 6) == [
        {**second, "logIndex": first["logIndex"]},
        {**first, "logIndex": second["logIndex"]},
    ]


def test_shuffled_logs_are_true_but_out_of_order(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("shuffle"))
    results = logs(liar)
    assert results != chain.logs()
    assert sorted(map(str, results)) == sorted(map(str, chain.logs()))
    assert logs(liar) == results


def test_delayed_logs_come_when_their_time_is_over(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("delay", first=8, last=8, seconds=3600))
    assert heights(chain.logs()) - heights(logs(liar)) == {8}
    liar.lie(Lie("delay", first=8, last=8, seconds=0))
    assert logs(liar) == chain.logs()


def test_truncated_answers_end_early_without_an_error(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("truncate", most=5))
    assert logs(liar) == chain.logs()[:5]
    assert logs(liar, 9, 9) == chain.logs(9, 9)
    assert chain.logs()[-1]["blockHash"] in liar.lies_about("truncate")


def test_wrong_hashes_make_up_a_chain_that_is_consistent(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("wrong hash", first=4))
    assert block(liar, 3) == chain.block(3)
    fourth, fifth = block(liar, 4), block(liar, 5)
    assert fourth["hash"] != chain.block(4)["hash"]
    assert fourth["parentHash"] == chain.block(3)["hash"]
    assert fifth["parentHash"] == fourth["hash"]
    assert {log["blockHash"] for log in logs(liar, 5, 5)} == {fifth["hash"]}
    assert logs_of(liar, fifth["hash"]) == logs(liar, 5, 5)
    assert ask(liar, "eth_getBlockByHash", fifth["hash"], False) == fifth
    assert block(liar, "latest")["hash"] == block(liar, chain.head)["hash"]
    [receipt, *_] = ask(liar, "eth_getBlockReceipts", fifth["hash"])
    assert receipt["blockHash"] == fifth["hash"]
    assert chain.block(5)["hash"] in liar.lies_about("wrong hash")


def test_a_forged_chain_has_other_blocks_whose_hashes_fit(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("forge", first=3))
    assert block(liar, 2) == chain.block(2)
    before = block(liar, 2)
    for height in range(3, chain.head + 1):
        forged = block(liar, height)
        assert forged["hash"] != chain.block(height)["hash"]
        assert has_own_hash(msgspec.convert(forged, Header))
        assert forged["parentHash"] == before["hash"]
        assert {log["blockHash"] for log in logs(liar, height, height)} <= {forged["hash"]}
        before = forged


def test_wrong_hashes_of_single_blocks_break_the_chain(liar: Liar) -> None:
    liar.lie(Lie("wrong hash", rate=0.5, is_consistent=False))
    assert len({block(liar, 4)["hash"] for _ in range(12)}) > 2


def test_another_chain_id_is_claimed(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("other chain", chain_id=5))
    assert ask(liar, "eth_chainId") == "0x5"
    assert ask(liar, "net_version") == "5"
    liar.be_honest()
    assert ask(liar, "eth_chainId") == hex(chain.chain_id)


def bloom_of(logs: list[dict[str, Any]]) -> int:
    bloom = 0
    for log in logs:
        for subject in (log["address"], *log["topics"]):
            bloom |= bits_of(subject.lower())
    return bloom


@pytest.mark.parametrize("kind", ["drop", "invent", "change", "retopic", "reorder", "delay"])
def test_a_lie_about_logs_is_the_same_in_receipts_and_bloom_filters(
    liar: Liar, chain: Node, kind: Any
) -> None:
    true = chain.block(7)
    assert int(true["logsBloom"], 16) == bloom_of(logs(liar, 7, 7))
    lie = Lie(kind, first=7, last=7, seconds=3600)
    liar.lie(lie)
    assert block(liar, 7) == true
    assert ask(liar, "eth_getBlockReceipts", "0x7")[0]["logs"] == chain.logs(7, 7)
    liar.lie(replace(lie, in_receipts=True, in_bloom=True))
    false = logs(liar, 7, 7)
    assert false != chain.logs(7, 7)
    for which in ("0x7", true["hash"]):
        receipts = ask(liar, "eth_getBlockReceipts", which)
        emitted = [log for receipt in receipts for log in receipt["logs"]]
        assert sorted(emitted, key=lambda log: int(log["logIndex"], 16)) == false
        assert int(receipts[0]["logsBloom"], 16) == bloom_of(false)
    assert int(block(liar, 7)["logsBloom"], 16) == bloom_of(false)
    assert {**block(liar, 7), "logsBloom": 0} == {**true, "logsBloom": 0}
    assert block(liar, 8) == chain.block(8)


def test_a_log_is_invented_in_a_block_without_transactions(liar: Liar, chain: Node) -> None:
    logs(liar)
    chain.mine(1)
    liar.lie(Lie("invent", first=chain.head, in_receipts=True, in_bloom=True))
    [false] = logs(liar, chain.head)
    [receipt] = ask(liar, "eth_getBlockReceipts", hex(chain.head))
    assert receipt["logs"] == [false]
    assert receipt["transactionHash"] == false["transactionHash"]
    assert chain.receipt(false["transactionHash"]) is None
    assert int(block(liar, chain.head)["logsBloom"], 16) == bloom_of([false])


def test_filters_see_the_same_lies(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("reorder"), Lie("drop", rate=0.3))
    full = logs(liar)
    topics = {log["topics"][0] for log in full}
    for topic in topics:
        assert logs(liar, topics=[topic]) == [log for log in full if log["topics"][0] == topic]


def test_headers_without_a_bloom_filter(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("no bloom", first=7, last=7))
    assert int(block(liar, 7)["logsBloom"], 16) == 0
    assert block(liar, 8) == chain.block(8)
    assert liar.lies_about() == {chain.block(7)["hash"]}


@pytest.mark.parametrize("kind", ["drop", "change", "retopic"])
def test_receipts_contradict_false_logs_or_repeat_them(liar: Liar, chain: Node, kind: Any) -> None:
    true = ask(liar, "eth_getBlockReceipts", "0x7")
    liar.lie(Lie(kind, first=7, last=7))
    assert ask(liar, "eth_getBlockReceipts", "0x7") == true
    liar.lie(Lie(kind, first=7, last=7, in_receipts=True))
    [receipt] = ask(liar, "eth_getBlockReceipts", "0x7")
    assert receipt["logs"] == logs(liar, 7, 7)
    assert receipt["logs"] != true[0]["logs"]
    assert ask(liar, "eth_getTransactionReceipt", receipt["transactionHash"]) == receipt


def test_several_lies_are_reported_together_and_with_other_faults(liar: Liar, chain: Node) -> None:
    liar.lie(Lie("drop", first=4, last=4), Lie("change", first=5, last=5))
    liar.proxy.on_reply(faults.backwards())
    assert 4 not in heights(logs(liar))
    assert logs(liar, 5, 5) != chain.logs(5, 5)
    assert liar.lies_about("drop") == {chain.block(4)["hash"]}
    assert liar.lies_about("change") == {chain.block(5)["hash"]}
