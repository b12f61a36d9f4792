"""What providers differ about is not believed, and who is alone with it is left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec
import pytest

from chain import rpc
from chain.core.blocks.hashes import hash_of
from chain.core.failures import Moved, Unavailable
from chain.core.node import Header, LogFilter
from chain.indexing import verification
from chain.rpc.pool import pool_of
from tests.chain.rpc.networks import network, proxies
from tests.evm import faults
from tests.evm.node import Node
from tests.evm.proxy import Call, Proxy

pytestmark = pytest.mark.django_db
ID = 31337
NOTHING = LogFilter()


@pytest.fixture
def pair(node: Node) -> Iterator[list[Proxy]]:
    network()
    with ExitStack() as stack:
        yield proxies(stack, node, "first", "second")


@pytest.fixture
def three(node: Node) -> Iterator[list[Proxy]]:
    network()
    with ExitStack() as stack:
        yield proxies(stack, node, "first", "second", "third")


def compared(first: int, last: int, log_filter: LogFilter = NOTHING) -> tuple[str, int]:
    """Which provider was asked, and up to which of these blocks the others have the same."""

    def step(node: rpc.Node) -> tuple[str, int]:
        headers = node.headers([*range(first, last + 1)])
        logs = node.logs(log_filter, first, last) if log_filter.addresses else []
        existing = [
            header for header in headers if header is not None
        ]  # what the provider has of them
        return node.provider, rpc.agreed(node, existing, log_filter, logs)

    return rpc.attempt(ID, step)


def other_blocks(height: int, data: str = "0xf0") -> Any:
    """For ``eth_getBlockByNumber``: blocks with other extra data from this height on."""

    def hook(call: Call) -> Any:
        answer = call.forward()
        if answer and int(answer["number"], 16) >= height:
            answer = {**answer, "extraData": data}
            answer["hash"] = hash_of(msgspec.convert(answer, Header))
        return answer

    return hook


def lie(proxy: Proxy, height: int, data: str = "0xf0") -> None:
    proxy.on("eth_getBlockByNumber", other_blocks(height, data))


def test_one_provider_alone_is_believed(node: Node) -> None:
    network()
    node.mine(5)
    with ExitStack() as stack:
        proxies(stack, node, "first")
        assert compared(1, 5) == ("first", 5)


def test_providers_that_say_the_same_agree_up_to_the_last_block(
    pair: list[Proxy], node: Node
) -> None:
    node.mine(40)
    assert compared(1, 5) == ("first", 5)
    assert compared(1, 40) == ("first", 40)
    # The block's hash stands for all before it: a request or two are enough.
    assert pair[1].requests <= 3


def test_the_lower_head_wins(pair: list[Proxy], node: Node) -> None:
    node.mine(8)
    faults.stay_at(pair[1], 6)
    assert compared(4, 8) == ("first", 6)
    assert compared(7, 8) == ("first", 6)


def test_a_provider_that_lags_far_or_fails_has_no_say(pair: list[Proxy], node: Node) -> None:
    node.mine(30)
    faults.stay_at(pair[1], 6)
    assert compared(25, 30) == ("first", 30)
    pair[1].be_good()
    pair[1].on_request(faults.server_error(500))
    assert compared(25, 30) == ("first", 30)


def test_two_that_differ_agree_on_what_they_share_and_no_more(
    pair: list[Proxy], node: Node
) -> None:
    node.mine(8)
    lie(pair[1], 6)
    assert compared(4, 8) == ("first", 5)
    with pytest.raises(Moved, match="differ at block 6"):
        compared(6, 8)
    # A moment's difference is how networks are.
    assert [provider.trouble for provider in rpc.health(ID)] == [None, None]


def test_two_that_go_on_differing_are_reported(pair: list[Proxy], node: Node) -> None:
    node.mine(3)
    lie(pair[1], 1)
    with pytest.raises(Moved):
        compared(1, 3)
    for member in pool_of(ID).known():
        member.differs_since -= 60
    with pytest.raises(Moved):
        compared(1, 3)
    text = "another provider has something else at block 1"
    assert [provider.trouble for provider in rpc.health(ID)] == [text, text]

    pair[1].be_good()
    assert compared(1, 3) == ("first", 3)
    assert all(member.differs_since is None for member in pool_of(ID).known())


def test_of_three_the_one_that_is_alone_is_left_out(three: list[Proxy], node: Node) -> None:
    node.mine(8)
    lie(three[2], 5)
    assert compared(1, 8) == ("first", 8)
    providers = {provider.name: provider for provider in rpc.health(ID)}
    assert providers["third"].trouble == "differs from the other providers at block 5"
    assert providers["third"].paused_until is not None


def test_a_provider_against_the_majority_is_not_queried_on(three: list[Proxy], node: Node) -> None:
    node.mine(8)
    lie(three[0], 5)
    name, height = compared(1, 8)
    assert (name in ("second", "third"), height) == (True, 8)
    providers = {provider.name: provider for provider in rpc.health(ID)}
    assert providers["first"].trouble == "differs from the other providers at block 5"


@pytest.mark.parametrize("liar", [0, 1, 2])
def test_a_provider_without_the_block_yet_confirms_neither_side(
    three: list[Proxy], node: Node, liar: int
) -> None:
    """Of three, two differ and the third lags: none is excluded."""
    node.mine(8)
    lie(three[liar], 5)
    behind = 2 if liar == 1 else 1
    faults.stay_at(three[behind], 4)
    assert compared(1, 8)[1] == 4
    with pytest.raises(Moved, match="differ at block 5"):
        compared(5, 8)
    assert all(provider.paused_until is None for provider in rpc.health(ID))
    three[behind].be_good()
    assert compared(1, 8)[1] == 8
    assert [provider.paused_until is not None for provider in rpc.health(ID)].index(True) == liar


def test_a_provider_that_refuses_comparisons_is_left_out(
    pair: list[Proxy], node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chain.core.comparisons.SHORTEST", 0.0)
    node.mine(8)
    only_heights = faults.only_if(
        lambda call: call.params[0] != "latest", faults.fails(-32000, "no blocks for you")
    )
    pair[1].on("eth_getBlockByNumber", only_heights)
    for _ in range(3):
        assert compared(1, 8) == ("first", 8)
        assert rpc.witnessed(ID) == -1
    providers = {provider.name: provider for provider in rpc.health(ID)}
    assert providers["second"].trouble == "can't be compared: no blocks for you (-32000)"
    assert providers["second"].paused_until is not None


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 1])
def test_a_slow_provider_is_left_out_for_a_minute(
    pair: list[Proxy], node: Node, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    monkeypatch.setattr("chain.core.comparisons.SLOW", 0.2)
    monkeypatch.setattr("chain.rpc.pool.LONGEST_STEP", 0.2)
    node.mine(8)
    pair[place].on("eth_getBlockByNumber", faults.late(0.3))
    names = [compared(1, 8)[0] for _ in range(4)]
    assert names[-1] == ("second", "first")[place]
    slow = [provider for provider in rpc.health(ID) if provider.paused_until is not None]
    assert [provider.name for provider in slow] == [("first", "second")[place]]
    assert str(slow[0].trouble).startswith("slow: ")


def test_a_slow_provider_alone_goes_on(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chain.rpc.pool.LONGEST_STEP", 0.2)
    network()
    node.mine(3)
    with ExitStack() as stack:
        [proxy] = proxies(stack, node, "first")
        proxy.on("eth_getBlockByNumber", faults.late(0.3))

        def step(request: rpc.Node) -> int:
            return len([request.header(height) for height in (1, 2, 3)])

        assert rpc.attempt(ID, step, seconds=5) == 3
        # It takes longer than the caller has: only a patient one gets the answers.
        with pytest.raises(Unavailable):
            rpc.attempt(ID, step, seconds=0.4)
        assert rpc.attempt(ID, step, seconds=0.4, is_patient=True) == 3


def test_three_that_all_differ_are_not_believed(three: list[Proxy], node: Node) -> None:
    node.mine(3)
    lie(three[1], 1, "0xaa")
    lie(three[2], 1, "0xbb")
    with pytest.raises(Moved):
        compared(1, 3)


def test_one_that_is_far_ahead_of_two_others_is_not_believed(
    three: list[Proxy], node: Node
) -> None:
    node.mine(30)
    faults.stay_at(three[1], 6)
    faults.stay_at(three[2], 6)
    assert compared(5, 6)[1] == 6
    name, height = compared(5, 30)
    assert name in ("second", "third")
    assert height == 6
    assert rpc.health(ID)[0].trouble == "is 24 blocks ahead of the other providers"


def test_logs_are_compared_too(pair: list[Proxy], node: Node) -> None:
    gem = node.deployed("Gem")
    for _ in range(3):
        node.mined(gem.transact("mint", node.accounts[0]))
    head = node.head
    log_filter = LogFilter(addresses=(gem.address.lower(),))
    assert compared(head - 2, head, log_filter) == ("first", head)

    pair[0].on("eth_getLogs", faults.without_logs())
    with pytest.raises(Moved, match=f"differ at block {head - 2}"):
        compared(head - 2, head, log_filter)

    pair[0].be_good()
    hides_the_last = faults.altered(lambda logs: [*logs][:0])
    last = node.rpc("eth_getBlockByNumber", hex(head), False)["hash"]
    pair[1].on(
        "eth_getLogs",
        faults.only_if(lambda call: call.params[0]["blockHash"] == last, hides_the_last),
    )
    assert compared(head - 2, head, log_filter) == ("first", head - 1)


def test_a_reorganisation_between_the_questions_is_noticed(pair: list[Proxy], node: Node) -> None:
    node.mine(5)
    reorganise = faults.before(partial(node.reorg, 3))
    pair[1].on("eth_getBlockByNumber", reorganise, times=1)
    assert compared(1, 5) == ("first", 2)


# -- What receipts prove ---------------------------------------------------------------------------


def minted(node: Node, count: int) -> tuple[int, LogFilter]:
    """So many blocks with a log each: the first of them, and the filter for their logs."""
    gem = node.deployed("Gem")
    for _ in range(count):
        node.mined(gem.transact("mint", node.accounts[0]))
    return node.head - count + 1, LogFilter(addresses=(gem.address.lower(),))


def proved(first: int, last: int, log_filter: LogFilter) -> tuple[str, int]:
    """As ``compared``, where receipts may decide."""

    def step(node: rpc.Node) -> tuple[str, int]:
        headers = [
            header for header in node.headers([*range(first, last + 1)]) if header is not None
        ]
        logs = node.logs(log_filter, first, last)
        height = rpc.agreed(node, headers, log_filter, logs, evidence=verification.evidence)
        return node.provider, height

    return rpc.attempt(ID, step)


def changed(logs: Any) -> Any:
    """Logs with other topics."""
    return [{**log, "topics": [*log["topics"][:-1], "0x" + "ab" * 32]} for log in logs]


def with_other_transactions(logs: Any) -> Any:
    return [{**log, "transactionHash": "0x" + "ab" * 32} for log in logs]


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("lie", [changed, faults.without_logs], ids=["changed", "dropped"])
@pytest.mark.parametrize("liar", [0, 1])
def test_of_two_the_one_is_believed_whose_logs_are_proved(
    pair: list[Proxy], node: Node, count: int, lie: Any, liar: int
) -> None:
    first, expected = minted(node, count)
    pair[liar].on("eth_getLogs", faults.altered(lie) if lie is changed else lie())
    # With a liar beside it, so much is certain as is proved; after that the liar is left out.
    agreed = node.head if liar == 0 else first
    assert proved(first, node.head, expected) == (("second", "first")[liar], agreed)
    assert proved(first, node.head, expected) == (("second", "first")[liar], node.head)
    providers = {provider.name: provider for provider in rpc.health(ID)}
    name = ("first", "second")[liar]
    assert providers[name].trouble == f"has other logs in block {first} than its receipts prove"
    assert providers[name].paused_until is not None


def test_two_colluding_providers_are_no_majority_against_a_proof(
    three: list[Proxy], node: Node
) -> None:
    first, expected = minted(node, 3)
    for proxy in three[1:]:
        proxy.on("eth_getLogs", faults.altered(changed))
    assert proved(first, node.head, expected) == ("first", first)
    assert proved(first, node.head, expected) == ("first", node.head)


def test_a_provider_that_is_wrong_about_logs_may_be_right_about_a_later_block(
    pair: list[Proxy], node: Node
) -> None:
    first, expected = minted(node, 6)

    def without_first(logs: Any) -> Any:
        return [log for log in logs if log["blockNumber"] != hex(first)]

    pair[1].on("eth_getLogs", faults.altered(without_first))
    lie(pair[0], first + 3)
    assert proved(first, node.head, expected)[1] == first


def test_no_receipt_decides_between_two_hashes_of_a_transaction(
    pair: list[Proxy], node: Node
) -> None:
    first, expected = minted(node, 3)
    pair[1].on("eth_getLogs", faults.altered(with_other_transactions))
    with pytest.raises(Moved, match=f"differ at block {first}"):
        proved(first, node.head, expected)


def test_without_receipts_nothing_is_decided(pair: list[Proxy], node: Node) -> None:
    first, expected = minted(node, 3)
    pair[1].on("eth_getLogs", faults.altered(changed))
    for proxy in pair:
        proxy.on("eth_getBlockReceipts", faults.fails(-32601, "no such method"))
        proxy.on("eth_getTransactionReceipt", faults.gives(None))
    with pytest.raises(Moved, match=f"differ at block {first}"):
        proved(first, node.head, expected)


def test_a_wrong_answer_for_a_range_alone_doesn_t_matter(pair: list[Proxy], node: Node) -> None:
    first, expected = minted(node, 40)
    is_range = faults.only_if(lambda call: "fromBlock" in call.params[0], faults.without_logs())
    pair[1].on("eth_getLogs", is_range)
    assert proved(first, node.head, expected) == ("first", node.head)


def test_blocks_are_compared_by_hash(pair: list[Proxy], node: Node) -> None:
    node.mine(2)

    def step(node: rpc.Node) -> int:
        header = node.header(1)
        assert header is not None
        forged = Header("0x1", "0x" + "ee" * 32, header.parent_hash)
        return rpc.agreed(node, [forged])

    with pytest.raises(Moved):
        rpc.attempt(ID, step)
