"""A step is run with one provider, and with another if that fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from time import monotonic

import pytest

from chain import rpc
from chain.core.failures import Moved, Refused, TryAgain, Unavailable
from chain.core.node import LogFilter, header_in
from chain.rpc import contracts, pool
from chain.rpc.contracts import Call, Reverted
from chain.rpc.pool import pool_of
from tests.chain.rpc.networks import network, provider, proxies
from tests.evm import faults
from tests.evm.node import Node
from tests.evm.proxy import HttpAnswer, Proxy, proxied
from tests.evm.refuser import Refusal, Refuser

pytestmark = pytest.mark.django_db
ID = 31337


def head(node: rpc.Node) -> str:
    header = node.header("latest")
    assert header is not None
    return node.provider


@pytest.fixture
def pair(node: Node) -> Iterator[list[Proxy]]:
    """Two providers; the first gets the requests as long as it answers."""
    network()
    with ExitStack() as stack:
        yield proxies(stack, node, "first", "second")


def gives_retry_after(status: int, **headers: str):
    def hook(calls: object) -> None:
        raise HttpAnswer(status, b"<html>busy</html>", **headers)

    return hook


FAULTS = {
    "429": faults.too_many_requests(),
    "429 with Retry-After": faults.too_many_requests(retry_after=30),
    "500": faults.server_error(500),
    "503": faults.server_error(503),
    "a page": faults.page(),
    "no JSON": faults.body(b"upstream went away"),
    "JSON that is too deep": faults.body(b'{"id":0,"result":' + b"[" * 9999 + b"]" * 9999 + b"}"),
    "JSON of another kind": faults.body(b'{"hello": 1}'),
    "an empty body": faults.body(b""),
    "a dropped connection": faults.dropped(),
    "half an answer": faults.broken_off(),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_another_provider_is_queried_when_one_fails(pair: list[Proxy], fault) -> None:
    pair[0].on_request(fault)
    assert rpc.attempt(ID, head) == "second"
    assert pair[0].requests == 1


REPLIES = {
    "cut short": faults.cut_short(),
    "an answer missing": faults.without(1),
    "no answers": faults.empty(),
    "a call that failed for a moment": faults.one_failed(1, -32603, "Internal error"),
    "a call over the rate": faults.one_failed(1, 429, "Too many requests"),
}


@pytest.mark.parametrize("fault", REPLIES.values(), ids=REPLIES.keys())
def test_a_batch_that_is_not_whole_is_asked_of_another_provider(pair: list[Proxy], fault) -> None:
    rpc.attempt(ID, head)
    pair[0].on_reply(fault)
    answer = rpc.attempt(ID, lambda node: (node.provider, node.headers([0, "latest"])))
    assert answer[0] == "second"
    assert all(answer[1])


def test_answers_in_another_order_are_distinguished(pair: list[Proxy], node: Node) -> None:
    node.mine(3)
    pair[0].on_reply(faults.backwards())
    answer = rpc.attempt(ID, lambda item: (item.provider, item.headers([0, 1, 2, 3])))
    assert answer[0] == "first"
    assert [item.height for item in answer[1] if item] == [0, 1, 2, 3]


def test_a_call_of_a_batch_that_is_refused_takes_nothing_with_it(pair: list[Proxy]) -> None:
    rpc.attempt(ID, head)
    pair[0].on_reply(faults.one_failed(0, -32601, "the method does not exist"))
    calls = [("eth_foo", ()), ("eth_chainId", ())]
    answer = rpc.attempt(ID, lambda node: (node.provider, node.batch(calls)))
    assert answer[0] == "first"
    assert isinstance(answer[1][0], Refused)
    assert answer[1][1] == hex(ID)


@pytest.mark.slow
def test_no_answer_in_time_counts_as_a_failure(pair: list[Proxy], settings) -> None:
    # The second one has as long, on a busy machine.
    settings.SERVICE = {**settings.SERVICE, "RPC_TIMEOUT": 3}
    over = threading.Event()
    pair[0].on_request(faults.hangs(over))
    try:
        began = monotonic()
        assert rpc.attempt(ID, head) == "second"
        assert monotonic() - began < 30
    finally:
        over.set()


def test_a_step_is_run_again_from_its_beginning(pair: list[Proxy]) -> None:
    observed: list[str] = []

    def step(node: rpc.Node) -> str:
        observed.append(node.provider)
        head(node)
        if len(observed) == 1:
            raise TryAgain("half of it")
        return node.provider

    assert rpc.attempt(ID, step) == "second"
    assert observed == ["first", "second"]


ADDRESS = "0x" + "11" * 20
READS = {
    "header": lambda node: node.header("latest"),
    "headers": lambda node: node.headers([0, 1]),
    "logs": lambda node: node.logs(LogFilter((ADDRESS,)), 0, 2),
    "logs of blocks": lambda node: node.logs_of(LogFilter((ADDRESS,)), [node.header(1).hash]),
    "headers and logs": lambda node: node.headers_and_logs([0, 1], LogFilter((ADDRESS,))),
    "receipts": lambda node: node.receipts(["0x" + "ab" * 32]),
    "transactions": lambda node: node.transactions(["0x" + "ab" * 32] * 2),
    "balance": lambda node: contracts.balance_of(node, ADDRESS),
    "code": lambda node: contracts.has_code(node, ADDRESS),
    "nonce": lambda node: contracts.nonce_of(node, ADDRESS),
    "call": lambda node: contracts.call(node, Call(ADDRESS, "0x")),
    "calls": lambda node: contracts.calls(node, [Call(ADDRESS, "0x")] * 2),
    "estimate": lambda node: contracts.estimate(node, Call(ADDRESS, "0x")),
    "prices": contracts.prices,
    "broadcast": lambda node: contracts.broadcast(node, "0x00"),
}
METHODS = (
    *("eth_getBlockByNumber", "eth_getBlockByHash", "eth_getLogs", "eth_getTransactionReceipt"),
    *("eth_getTransactionByHash", "eth_getBalance", "eth_getCode", "eth_getTransactionCount"),
    *("eth_call", "eth_estimateGas", "eth_gasPrice", "eth_feeHistory", "eth_sendRawTransaction"),
)
UNKNOWN = [
    Refusal(-32701, "History has been pruned for this block."),
    Refusal(-32602, "Archive requests require a personal token", status=403, is_of_all=True),
    Refusal(17, "ozmi", status=400, is_of_all=True),
    Refusal(-32603, "vupp", is_of_all=True),
    Refusal(-32000, ""),
]


@pytest.mark.parametrize("refusal", UNKNOWN, ids=str)
@pytest.mark.parametrize("read", READS)
def test_what_one_provider_refuses_another_one_answers(
    pair: list[Proxy], node: Node, read: str, refusal: Refusal
) -> None:
    node.mine(2)
    rpc.attempt(ID, head)
    refuser = Refuser(refusal, methods=frozenset(METHODS))
    pair[0].on_request(refuser.request)
    pair[0].on_reply(refuser.reply)
    pair[1].on("eth_sendRawTransaction", faults.gives("0x" + "ab" * 32))

    def step(node: rpc.Node) -> str:
        READS[read](node)
        return node.provider

    for _ in range(4):
        assert rpc.attempt(ID, step) == "second"
        pool_of(ID)._kept_until = 0.0
    first = pool_of(ID).members()[0].health
    assert first.is_avoided or first.is_paused
    assert first.trouble
    assert refuser.refused <= 3 * 16


def test_what_all_providers_refuse_counts_against_none(pair: list[Proxy]) -> None:
    """A client may have named what no node answers."""
    for proxy in pair:
        proxy.on("eth_call", faults.fails(-32000, "zulk"))
    for _ in range(4):
        with pytest.raises(Unavailable, match="zulk") as raised:
            rpc.attempt(ID, READS["call"])
        assert raised.value.refusal is not None
    assert pair[0].calls["eth_call"] == pair[1].calls["eth_call"] == 8
    for member in pool_of(ID).members():
        assert not member.health.is_avoided
        assert not member.health.is_paused


def test_a_halt_of_the_contract_is_its_answer(pair: list[Proxy]) -> None:
    pair[0].on("eth_call", faults.fails(-32603, "EVM error InvalidOperandOOG"))
    with pytest.raises(Reverted, match="InvalidOperandOOG"):
        rpc.attempt(ID, READS["call"])
    assert pair[1].requests == 0


def test_blocks_that_no_provider_has_have_moved(pair: list[Proxy], node: Node) -> None:
    beyond = node.head + 10

    def step(each: rpc.Node) -> object:
        return each.logs(LogFilter((ADDRESS,)), beyond, beyond + 5)

    with pytest.raises(Moved):
        rpc.attempt(ID, step)
    assert pair[0].calls["eth_getLogs"] == pair[1].calls["eth_getLogs"] == 2


@pytest.mark.parametrize(
    "failure", [Moved("gone"), Reverted("no", None), ValueError("mine")], ids=str
)
def test_what_is_no_failure_of_the_provider_comes_out(
    pair: list[Proxy], failure: Exception
) -> None:
    def step(node: rpc.Node) -> None:
        head(node)
        raise failure

    with pytest.raises(type(failure)):
        rpc.attempt(ID, step)
    assert pair[1].requests == 0


def test_a_single_provider_is_queried_again_after_a_moment(node: Node) -> None:
    network()
    with proxied(node) as proxy:
        provider(proxy.url)
        proxy.on_request(faults.server_error(502), times=2)
        assert rpc.attempt(ID, head) == "first"


def test_a_network_that_is_dead_answers_at_once(node: Node) -> None:
    network()
    with proxied(node) as proxy:
        provider(proxy.url)
        proxy.refuse()
        with pytest.raises(Unavailable):
            rpc.attempt(ID, head)
        began = monotonic()
        for _ in range(50):
            with pytest.raises(Unavailable):
                rpc.attempt(ID, head)
        assert monotonic() - began < 10

        # One caller in a while looks whether it is back.
        proxy.accept()
        member = pool_of(ID).members()[0]
        member.health._probed_at -= 10
        assert rpc.attempt(ID, head) == "first"
        assert rpc.attempt(ID, head) == "first"
        assert not member.health.is_paused


def test_a_dead_network_costs_the_others_nothing(node: Node) -> None:
    network()
    with proxied(node) as alive:
        provider(alive.url)
        for number in range(3):
            provider("http://127.0.0.1:9", network_id=1000 + number)
            with pytest.raises(Unavailable):
                rpc.attempt(1000 + number, head, seconds=1)
        began = monotonic()
        assert rpc.attempt(ID, head) == "first"
        assert monotonic() - began < 2


def test_a_pause_that_was_requested_is_kept(pair: list[Proxy]) -> None:
    pair[0].on_request(faults.too_many_requests(retry_after=30), times=1)
    for _ in range(5):
        assert rpc.attempt(ID, head) == "second"
    assert pair[0].requests == 1
    left = pool_of(ID).members()[0].health.pause_left()
    assert 25 < left <= 30


def test_a_busy_provider_is_left_alone_if_it_says_for_how_long(pair: list[Proxy]) -> None:
    pair[0].on_request(gives_retry_after(503, Retry_After="20"), times=1)
    assert rpc.attempt(ID, head) == "second"
    assert 15 < pool_of(ID).members()[0].health.pause_left() <= 20


def test_a_short_pause_of_the_only_provider_is_waited_for(node: Node) -> None:
    network()
    with proxied(node) as proxy:
        provider(proxy.url)
        rpc.attempt(ID, head)
        proxy.on_request(faults.too_many_requests(), times=1)
        assert rpc.attempt(ID, head) == "first"


def test_a_short_pause_of_another_caller_is_waited_for(node: Node) -> None:
    network()
    with proxied(node) as proxy:
        provider(proxy.url)
        rpc.attempt(ID, head)
        member = pool_of(ID).known()[0]
        member.health.slowed("HTTP 429", 0.2)
        assert rpc.attempt(ID, head) == "first"
        member.health.slowed("HTTP 429", 60)
        with pytest.raises(Unavailable):
            rpc.attempt(ID, head)


def test_a_refused_key_is_not_tried_again(pair: list[Proxy]) -> None:
    pair[0].on_request(gives_retry_after(401))
    for _ in range(3):
        assert rpc.attempt(ID, head) == "second"
    assert pair[0].requests == 1


def test_a_network_without_an_endpoint_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="no endpoint"):
        rpc.attempt(ID, head)
    for number in range(100):  # a client may ask for any
        with pytest.raises(Unavailable):
            rpc.attempt(number, head)
    assert not pool._pools


def test_the_public_endpoint_is_queried_if_there_is_no_other(node: Node, settings) -> None:
    with proxied(node) as public, proxied(node) as own:
        network(rpc_endpoint=public.url)
        assert rpc.attempt(ID, head) == "public"
        settings.SERVICE = {**settings.SERVICE, "RPC_URLS": {ID: ((own.url, 5),)}}
        assert rpc.attempt(ID, head) == "setting 1"
        provider(own.url, "row", weight=30_000)
        public.forget_counts()
        assert rpc.attempt(ID, head) in ("row", "setting 1")
        assert public.requests == 0


def test_an_endpoint_that_is_changed_is_queried_at_its_new_address(pair: list[Proxy]) -> None:
    from chain.models import Provider
    from chain.rpc.endpoints import seal

    assert rpc.attempt(ID, head) == "first"
    Provider.objects.filter(name="first").update(url=seal(pair[1].url))
    pair[0].forget_counts()
    assert rpc.attempt(ID, head) == "first"
    assert pair[0].requests == 0


def test_a_provider_of_another_network_is_refused(pair: list[Proxy], caplog) -> None:
    pair[0].on("eth_chainId", faults.other_chain(1))
    observed: list[str] = []

    def step(node: rpc.Node) -> str:
        observed.append(node.provider)
        return head(node)

    assert rpc.attempt(ID, step) == "second"
    assert observed == ["second"]
    assert pair[0].log == ["eth_chainId"]
    first = rpc.health(ID)[0]
    assert first.trouble == "answers for network 1, not for 31337"


def test_the_chain_id_is_requested_again_after_a_minute(
    pair: list[Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        assert rpc.attempt(ID, head) == "first"
    assert pair[0].calls["eth_chainId"] == 1
    pair[0].on("eth_chainId", faults.other_chain(1))
    assert rpc.attempt(ID, head) == "first"
    monkeypatch.setattr(pool, "CONFIRMED_FOR", 0.0)
    assert rpc.attempt(ID, head) == "second"


@pytest.mark.parametrize("method", ["eth_blockNumber", "eth_unknown"])
def test_no_response_over_a_new_connection_is_believed_before_the_chain_id_is_confirmed(
    pair: list[Proxy], method: str
) -> None:
    """Neither a result nor an error: another node may answer at the address since."""

    def call(node: rpc.Node) -> str:
        with suppress(Refused):
            node.call(method)
        return node.provider

    assert rpc.attempt(ID, call) == "first"
    pair[0].refuse()  # ends the connections, too
    pair[0].accept()
    pair[0].on("eth_chainId", faults.other_chain(1))
    assert rpc.attempt(ID, call) == "second"


def test_the_chain_id_is_requested_once_for_a_new_connection(pair: list[Proxy]) -> None:
    assert rpc.attempt(ID, head) == "first"
    pair[0].refuse()
    pair[0].accept()
    for _ in range(3):
        assert rpc.attempt(ID, head) == "first"
    assert pair[0].calls["eth_chainId"] == 2


def test_the_chain_id_is_requested_again_after_a_request_without_a_response(
    pair: list[Proxy],
) -> None:
    assert rpc.attempt(ID, head) == "first"
    pair[0].on_request(faults.dropped(), times=1)
    assert rpc.attempt(ID, head) == "second"
    pool_of(ID)._kept_until = 0.0
    pair[0].on("eth_chainId", faults.other_chain(1))
    assert rpc.attempt(ID, head) == "second"
    assert rpc.health(ID)[0].trouble == "answers for network 1, not for 31337"


def test_servers_that_close_each_connection_are_not_queried_each_time(node: Node) -> None:
    network()
    with proxied(node) as closing:
        provider(closing.url)
        closing.closes_connections = True
        for _ in range(5):
            rpc.attempt(ID, head)
        assert closing.calls["eth_chainId"] == 1


def test_only_providers_of_another_network_are_none(node: Node) -> None:
    network(1)
    provider(node.url, network_id=1)
    for _ in range(2):
        with pytest.raises(Unavailable, match="answers for network 31337, not for 1"):
            rpc.attempt(1, head)


def test_a_provider_that_lags_is_left_out(pair: list[Proxy], node: Node) -> None:
    rpc.attempt(ID, head)  # the first is kept
    faults.stay_at(pair[0], int(node.rpc("eth_blockNumber"), 16))
    node.mine(5)
    rpc.ask_several(ID, head)
    assert rpc.attempt(ID, head) == "first"  # a few blocks behind is how networks are
    node.mine(10)
    rpc.ask_several(ID, head)
    assert rpc.attempt(ID, head) == "second"
    providers = {item.name: item for item in rpc.health(ID)}
    assert providers["first"].lag == 15
    assert providers["first"].trouble == "lags 15 blocks behind"


def test_a_head_that_is_none_makes_no_one_lag(pair: list[Proxy]) -> None:
    pair[0].on(
        "eth_getBlockByNumber", faults.altered(lambda block: {**block, "number": "0x1" + "0" * 20})
    )

    def step(node: rpc.Node) -> str:
        [block] = node.batch([("eth_getBlockByNumber", ("latest", False))])
        header_in(block)
        return str(node.provider)

    assert rpc.attempt(ID, step) == "second"


def test_who_lags_is_queried_when_there_is_no_other(pair: list[Proxy], node: Node) -> None:
    rpc.attempt(ID, head)
    faults.stay_at(pair[0], int(node.rpc("eth_blockNumber"), 16))
    node.mine(20)
    rpc.ask_several(ID, head)
    pair[1].refuse()
    assert rpc.attempt(ID, head) == "first"


def test_several_providers_are_queried_each_once(pair: list[Proxy]) -> None:
    assert sorted(rpc.ask_several(ID, head)) == ["first", "second"]
    pair[0].on_request(faults.server_error(500))
    assert rpc.ask_several(ID, head) == ["second"]


def test_an_orphaned_block_is_no_failure_of_the_provider(node: Node, pair: list[Proxy]) -> None:
    node.mine(2)
    log_filter = LogFilter(addresses=("0x" + "11" * 20,))
    with pytest.raises(Moved):
        rpc.attempt(ID, lambda item: item.logs_of(log_filter, ["0x" + "ab" * 32]))
    assert pair[1].requests == 0
