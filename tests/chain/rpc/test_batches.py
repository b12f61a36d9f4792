"""Calls in one request: as many as a node takes, learned from what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from chain.core.failures import (
    LogsRefused,
    Moved,
    RangeTooLarge,
    Refused,
    SlowDown,
    TryAgain,
)
from chain.core.node import LogFilter
from chain.rpc.client.http_node import HttpNode
from chain.rpc.client.json_rpc import Endpoint
from tests.evm import faults
from tests.evm.node import Node
from tests.evm.proxy import HttpAnswer, Proxy, proxied
from tests.evm.refuser import Refusal, Refuser

ANY = LogFilter(addresses=("0x" + "11" * 20,))


@pytest.fixture
def proxy(node: Node) -> Iterator[Proxy]:
    with proxied(node) as proxy:
        yield proxy


@pytest.fixture
def endpoint(proxy: Proxy) -> Endpoint:
    return Endpoint(proxy.url, timeout=5)


@pytest.fixture
def http_node(endpoint: Endpoint) -> HttpNode:
    return HttpNode(31337, "first", endpoint)


def at_most(size: int, say):
    """Larger batches are refused as ``say`` does it."""

    def hook(calls: list) -> None:
        if len(calls) > size:
            say(calls)

    return hook


def one_error(calls: list) -> None:
    error = {"code": -32600, "message": "batch too large"}
    raise HttpAnswer(200, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())


def error_for_the_first(calls: list) -> None:
    error = {"code": -32600, "message": "batch too large"}
    reply = {"jsonrpc": "2.0", "id": calls[0]["id"], "error": error}
    raise HttpAnswer(200, json.dumps([reply]).encode())


def entity_too_large(calls: list) -> None:
    raise HttpAnswer(413, b"Request Entity Too Large")


def bad_request(calls: list) -> None:
    error = {"code": -32000, "message": "Invalid Request"}
    raise HttpAnswer(400, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())


def says_how_many(calls: list) -> None:
    error = {"code": -32600, "message": "Batch of more than 3 requests are not allowed"}
    raise HttpAnswer(500, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())


@pytest.mark.parametrize(
    "say", [one_error, error_for_the_first, entity_too_large, bad_request, says_how_many]
)
def test_the_size_of_a_batch_is_learned_from_refusals(
    proxy: Proxy, endpoint: Endpoint, http_node: HttpNode, node: Node, say
) -> None:
    node.mine(40)
    proxy.on_request(at_most(3, say))
    headers = http_node.headers([*range(40)])
    assert [header.height for header in headers if header] == [*range(40)]
    assert endpoint.batch_size in (2, 3)
    assert endpoint.health.failures == 0
    # It is known from then on.
    proxy.forget_counts()
    http_node.headers([*range(6)])
    assert proxy.requests == 6 // endpoint.batch_size


def test_a_node_without_batches_is_queried_one_by_one(
    proxy: Proxy, endpoint: Endpoint, http_node: HttpNode, node: Node
) -> None:
    node.mine(4)
    proxy.on_request(at_most(1, one_error))
    assert [header.height for header in http_node.headers([0, 1, 2, 3]) if header] == [0, 1, 2, 3]
    assert endpoint.batch_size == 1


def test_an_answer_that_is_cut_to_size_is_asked_in_smaller_parts(
    proxy: Proxy, http_node: HttpNode, node: Node
) -> None:
    node.mine(10)

    def cut(replies: list) -> list:
        # As geth: what comes after so many bytes is an error.
        if len(replies) <= 3:
            return replies
        error = {"code": -32003, "message": "response too large"}
        return [
            *replies[:3],
            *({"jsonrpc": "2.0", "id": reply["id"], "error": error} for reply in replies[3:]),
        ]

    proxy.on_reply(cut)
    assert [header.height for header in http_node.headers([*range(10)]) if header] == [*range(10)]


def test_ids_may_come_back_as_text(proxy: Proxy, http_node: HttpNode) -> None:
    proxy.on_reply(lambda replies: [{**reply, "id": str(reply["id"])} for reply in replies])
    assert all(http_node.headers([0, "latest"]))


def test_logs_of_blocks_that_the_node_lacks_are_no_limit(http_node: HttpNode, node: Node) -> None:
    with pytest.raises(Moved):
        http_node.logs(ANY, node.head + 10, node.head + 20)


WITHOUT_A_NUMBER = {"ankr", "chainstack"}


@pytest.mark.parametrize("style", faults.RANGE_LIMITS)
def test_limits_of_ranges_come_out(
    proxy: Proxy, http_node: HttpNode, node: Node, style: str
) -> None:
    node.mine(20)
    proxy.on("eth_getLogs", faults.range_limit(style, 10))
    expected = None if style in WITHOUT_A_NUMBER else 10
    with pytest.raises(RangeTooLarge) as raised:
        http_node.logs(ANY, 0, 19)
    assert (raised.value.blocks, raised.value.is_structural) == (expected, True)
    # In a batch with other calls as well, which doesn't make the batch smaller.
    proxy.forget_counts()
    with pytest.raises(RangeTooLarge):
        http_node.headers_and_logs([*range(20)], ANY)
    assert proxy.requests == 1


@pytest.mark.parametrize("style", faults.RESULT_LIMITS)
def test_limits_of_results_come_out(
    proxy: Proxy, http_node: HttpNode, node: Node, style: str
) -> None:
    gem = node.deployed("Gem")
    for _ in range(3):
        node.mined(gem.transact("mint", node.accounts[0]))
    log_filter = LogFilter(addresses=(gem.address,))
    proxy.on("eth_getLogs", faults.result_limit(style, 2))
    with pytest.raises(RangeTooLarge) as raised:
        http_node.logs(log_filter, 0, node.head)
    assert not raised.value.is_structural
    offered = None if style in ("size", "timeout") else node.head // 2 + 1
    assert raised.value.blocks == offered
    assert len(http_node.logs(log_filter, node.head, node.head)) == 1


def test_a_limit_that_comes_with_status_400_is_read(proxy: Proxy, http_node: HttpNode) -> None:
    error = {"code": -32600, "message": "eth_getLogs is limited to a 5 block range"}
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode()

    def refuse(calls: list) -> None:
        raise HttpAnswer(400, body)

    proxy.on_request(refuse)
    with pytest.raises(RangeTooLarge):
        http_node.logs(ANY, 0, 19)


def test_no_calls_are_no_request(proxy: Proxy, http_node: HttpNode) -> None:
    assert http_node.headers([]) == []
    assert http_node.receipts([]) == []
    assert proxy.requests == 0


def test_a_refusal_tells_what_was_refused(http_node: HttpNode) -> None:
    with pytest.raises(Refused) as raised:
        http_node.call("eth_foo")
    assert raised.value.code == -32601


def test_redirects_are_not_followed(proxy: Proxy, http_node: HttpNode) -> None:
    def elsewhere(calls: list) -> None:
        raise HttpAnswer(302, b"", Location="http://127.0.0.1:9/")

    proxy.on_request(elsewhere)
    with pytest.raises(TryAgain, match="HTTP 302"):
        http_node.call("eth_chainId")


def spoiled(name: str, value: object):
    return faults.altered(lambda results: {**results, name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", "many"),
        ("number", "0x"),
        ("number", 5),
        ("hash", "0x12"),
        ("hash", None),
        ("parentHash", "0x" + "g" * 64),
        ("timestamp", "0x5\n"),
        ("transactions", ["0x12"]),
        ("transactions", [{"hash": "0x" + "ab" * 32}]),
    ],
)
def test_what_is_no_block_is_no_answer(
    proxy: Proxy, http_node: HttpNode, name: str, value: object
) -> None:
    proxy.on("eth_getBlockByNumber", spoiled(name, value))
    with pytest.raises(TryAgain):
        http_node.header("latest")


@pytest.mark.parametrize(
    ("name", "value"), [("blockNumber", "0xx"), ("gasUsed", "1"), ("status", "ok"), ("to", "0x1")]
)
def test_what_is_no_receipt_is_no_answer(
    proxy: Proxy, http_node: HttpNode, node: Node, name: str, value: object
) -> None:
    sent = node.send({"from": node.accounts[0], "to": node.accounts[1], "value": 1})
    node.mined(sent)
    proxy.on("eth_getTransactionReceipt", spoiled(name, value))
    with pytest.raises(TryAgain):
        http_node.receipts([sent])


@pytest.mark.parametrize(("name", "value"), [("blockNumber", "x"), ("logIndex", None)])
def test_a_log_without_a_place_is_no_answer(
    proxy: Proxy, http_node: HttpNode, node: Node, name: str, value: object
) -> None:
    gem = node.deployed("Gem")
    node.mined(gem.transact("mint", node.accounts[0]))
    proxy.on("eth_getLogs", faults.altered(lambda logs: [{**log, name: value} for log in logs]))
    with pytest.raises(TryAgain):
        http_node.logs(LogFilter(addresses=(gem.address,)), 0, node.head)


ERRORS = [(-32602, "specify less number of addresses"), (-32000, "kolv"), (-32603, "out of range")]


@pytest.mark.parametrize(("code", "text"), ERRORS)
def test_the_number_of_contracts_in_a_filter_is_learned_from_refusals(
    proxy: Proxy, endpoint: Endpoint, http_node: HttpNode, node: Node, code: int, text: str
) -> None:
    gems = [node.deployed("Gem") for _ in range(9)]
    for gem in gems:
        gem.transact("spam", 1)
    node.mine(1)
    hashes = [node.block(number)["hash"] for number in range(1, node.head + 1)]
    log_filter = LogFilter(tuple(gem.address for gem in gems))
    refuser = Refuser(Refusal(code, text), most_contracts=3)
    proxy.on_request(refuser.request)
    proxy.on_reply(refuser.reply)
    for _ in range(3):
        logs = [log for some in http_node.logs_of(log_filter, hashes) for log in some]
        assert [log.height for log in logs] == [*range(10, 19)]
        assert {log.address.lower() for log in logs} == {gem.address.lower() for gem in gems}
        assert endpoint.contracts.width in (2, 3)
    # It is known from then on, also for ranges.
    refused = refuser.refused
    assert len(http_node.logs(log_filter, 0, node.head)) == 9
    assert len(http_node.headers_and_logs([0, node.head], log_filter)[1]) == 9
    assert refuser.refused == refused
    assert endpoint.health.failures == 0


def test_a_provider_that_refuses_each_contract_is_asked_for_few(
    proxy: Proxy, endpoint: Endpoint, http_node: HttpNode, node: Node
) -> None:
    log_filter = LogFilter(tuple(f"0x{number:040x}" for number in range(100)))
    proxy.on("eth_getLogs", faults.fails(-32000, "kolv"))
    with pytest.raises(LogsRefused):
        http_node.logs(log_filter, 0, 0)
    assert proxy.calls["eth_getLogs"] == 3
    assert endpoint.contracts.width > 100


def test_a_text_about_the_rate_holds_for_logs_if_the_smallest_request_is_refused(
    proxy: Proxy, endpoint: Endpoint, http_node: HttpNode, node: Node
) -> None:
    proxy.on("eth_getLogs", faults.fails(-32000, "requests per second exceeded"))
    with pytest.raises(LogsRefused):
        http_node.logs(ANY, 0, 1)
    assert not endpoint.health.is_paused
    with pytest.raises(SlowDown):
        http_node.logs(ANY, 1, 1)
    assert endpoint.health.is_paused


@pytest.mark.parametrize("status", [200, 403, 500])
def test_a_node_that_refuses_everything_is_not_asked_call_by_call(
    proxy: Proxy, endpoint: Endpoint, http_node: HttpNode, status: int
) -> None:
    def refuse(calls: list) -> None:
        error = {"code": -32000, "message": "kolv"}
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        raise HttpAnswer(status, json.dumps(body).encode())

    proxy.on_request(refuse)
    with pytest.raises((Refused, TryAgain)):
        http_node.headers([*range(64)])
    assert proxy.requests <= 8
    assert endpoint.batch_size == 100


def test_the_size_of_a_batch_recovers(
    proxy: Proxy, endpoint: Endpoint, http_node: HttpNode, node: Node
) -> None:
    """A batch may have been refused for one of its calls."""
    proxy.on_request(at_most(1, one_error), times=3)
    http_node.headers([0] * 8)
    assert endpoint.batch_size < 8
    for _ in range(60):
        http_node.headers([0] * endpoint.batch_size)
    assert endpoint.batch_size >= 8
