"""The proxy that fails on demand."""

from __future__ import annotations

import json
import threading

import httpx
import pytest
from websockets.sync.client import connect

from tests.evm import faults
from tests.evm.node import running_node
from tests.evm.proxy import proxied

HEADS = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}


@pytest.fixture(scope="module")
def chain():
    with running_node() as node:
        gem = node.deployed("Gem")
        for _ in range(4):
            node.mined(gem.transact("mint", node.accounts[1]))
        yield node


@pytest.fixture
def proxy(chain):
    with proxied(chain) as proxy:
        yield proxy


def ask(proxy, method, *params):
    body = {"jsonrpc": "2.0", "id": 9, "method": method, "params": params}
    return httpx.post(proxy.url, json=body).json()


def ask_all(proxy, *heights):
    calls = [
        {"jsonrpc": "2.0", "id": n, "method": "eth_getBlockByNumber", "params": [hex(n), False]}
        for n in heights
    ]
    return httpx.post(proxy.url, json=calls)


ALL_LOGS = {"fromBlock": "0x0", "toBlock": "0x5"}


def test_untold_it_passes_on_and_counts(proxy, chain):
    assert ask(proxy, "eth_getLogs", ALL_LOGS)["result"] == chain.logs()
    assert [item["id"] for item in ask_all(proxy, 1, 2).json()] == [1, 2]
    assert proxy.requests == 2
    assert proxy.calls == {"eth_getLogs": 1, "eth_getBlockByNumber": 2}


def test_hooks_answer_as_often_as_they_are_reported(proxy, chain):
    proxy.on("eth_getLogs", faults.doubled())
    proxy.on("eth_getLogs", faults.without_logs(), times=1)
    proxy.on("eth_getLogs", faults.fails(-32000, "no"), times=1)

    assert ask(proxy, "eth_getLogs", ALL_LOGS)["error"] == {"code": -32000, "message": "no"}
    assert ask(proxy, "eth_getLogs", ALL_LOGS)["result"] == []
    assert len(ask(proxy, "eth_getLogs", ALL_LOGS)["result"]) == 8
    proxy.be_good()
    assert len(ask(proxy, "eth_getLogs", ALL_LOGS)["result"]) == 4


def test_whole_requests_are_refused_dropped_and_broken_off(proxy):
    proxy.on_request(faults.too_many_requests(retry_after=3), times=1)
    refused = ask_all(proxy, 1)
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "3"

    for fault in (faults.dropped(), faults.broken_off()):
        proxy.on_request(fault, times=1)
        with pytest.raises(httpx.RemoteProtocolError):
            ask_all(proxy, 1)

    proxy.refuse()
    with pytest.raises(httpx.TransportError):
        ask_all(proxy, 1)
    proxy.accept()
    assert ask_all(proxy, 1).status_code == 200


def test_batches_come_back_disordered_short_and_refused(proxy):
    proxy.on_reply(faults.backwards(), times=1)
    assert [item["id"] for item in ask_all(proxy, 1, 2, 3).json()] == [3, 2, 1]
    proxy.on_reply(faults.without(1), times=1)
    assert [item["id"] for item in ask_all(proxy, 1, 2, 3).json()] == [1, 3]
    proxy.on_reply(faults.one_failed(1, -32000, "no"), times=1)
    assert ["error" in item for item in ask_all(proxy, 1, 2, 3).json()] == [False, True, False]
    proxy.on_reply(faults.one_error(), times=1)
    assert ask_all(proxy, 1, 2).json()["error"]["code"] == -32600
    proxy.on_reply(faults.empty(), times=1)
    assert ask_all(proxy, 1, 2).json() == []
    proxy.on_reply(faults.cut_short(), times=1)
    with pytest.raises(json.JSONDecodeError):
        ask_all(proxy, 1, 2).json()


def test_a_provider_that_is_behind_knows_nothing_above_its_height(proxy, chain):
    faults.stay_at(proxy, 2)

    assert ask(proxy, "eth_blockNumber")["result"] == "0x2"
    assert ask(proxy, "eth_getBlockByNumber", "latest", False)["result"]["number"] == "0x2"
    assert ask(proxy, "eth_getBlockByNumber", "0x3", False)["result"] is None
    assert len(ask(proxy, "eth_getLogs", ALL_LOGS)["result"]) == 1
    last = chain.logs()[-1]
    assert ask(proxy, "eth_getTransactionReceipt", last["transactionHash"])["result"] is None


@pytest.mark.parametrize("style", faults.RANGE_LIMITS)
def test_ranges_are_limited_in_the_words_of(proxy, style):
    proxy.on("eth_getLogs", faults.range_limit(style, 3))

    assert "error" in ask(proxy, "eth_getLogs", ALL_LOGS)
    assert "result" in ask(proxy, "eth_getLogs", {"fromBlock": "0x1", "toBlock": "0x3"})


@pytest.mark.parametrize("style", faults.RESULT_LIMITS)
def test_results_are_limited_in_the_words_of(proxy, style):
    proxy.on("eth_getLogs", faults.result_limit(style, 2))

    assert "error" in ask(proxy, "eth_getLogs", ALL_LOGS)
    assert "result" in ask(proxy, "eth_getLogs", {"fromBlock": "0x2", "toBlock": "0x3"})


def test_sockets_bring_heads_until_they_fall_silent_or_are_closed(proxy, chain):
    with connect(proxy.socket_url) as client:
        client.send(json.dumps(HEADS))
        assert "result" in json.loads(client.recv(10))
        height = chain.mine()
        head = json.loads(client.recv(10))
        assert int(head["params"]["result"]["number"], 16) == height
        proxy.socket.fall_silent()
        chain.mine()
        with pytest.raises(TimeoutError):
            client.recv(0.1)
        proxy.socket.tell({"hello": 1})
        assert json.loads(client.recv(10)) == {"hello": 1}
        threading.Thread(target=proxy.socket.close_all).start()
        with pytest.raises(Exception, match="1012"):
            client.recv(10)
    assert proxy.socket.methods == ["eth_subscribe"]
