"""An answer has no more bytes than a true one may have, packed or not."""

from __future__ import annotations

import gzip
import json
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from chain.core.failures import RangeTooLarge, Refused, TryAgain
from chain.core.node import LogFilter
from chain.monitor import node_requests
from chain.rpc.client import response_sizes
from chain.rpc.client.http_node import HttpNode
from chain.rpc.client.json_rpc import Endpoint
from chain.sending.signers.problems import CannotSign
from chain.sending.signers.remote import RemoteSigner

MB = 1024 * 1024
HASH = f"0x{'ab' * 32}"
WANTED = LogFilter(addresses=(f"0x{'11' * 20}",))


@cache
def bomb(megabytes: int) -> bytes:
    """Much in little: a JSON text with this many bytes of nothing before its end."""
    return gzip.compress(b'{"id":0,"result":"' + b" " * megabytes * MB + b'"}', 1)


class Liar:
    """A node that answers a method with a bomb, and others with null; a batch with it if one of its
    calls is of the method."""

    def __init__(self, method: str, megabytes: int) -> None:
        self.method = method
        self.body = bomb(megabytes)
        self.encoding = "gzip"
        self.batches: list[int] = []

    def answer(self, request: Any) -> bytes | None:
        """None is the bomb."""
        calls = request if isinstance(request, list) else [request]
        self.batches.append(len(calls))
        if any(call["method"] == self.method for call in calls):
            return None
        message = [{"id": call["id"], "result": None} for call in calls]
        return json.dumps(message if isinstance(request, list) else message[0]).encode()


@contextmanager
def served(liar: Liar) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = liar.answer(document)
            self.send_response(200)
            if body is None:
                self.send_header("Content-Encoding", liar.encoding)
                body = liar.body
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):  # who has asked is gone
                self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Encoding", liar.encoding)
            self.send_header("Content-Length", str(len(liar.body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(liar.body)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def costing(at_most: int) -> Iterator[None]:
    """What happens inside holds no more bytes at any moment."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < at_most
    finally:
        tracemalloc.stop()


def test_an_answer_that_is_compressed_twice_is_not_unpacked() -> None:
    liar = Liar("eth_chainId", 64)
    liar.body, liar.encoding = gzip.compress(liar.body), "gzip, gzip"
    with (
        served(liar) as url,
        costing(12 * MB),
        pytest.raises(TryAgain, match="in an encoding that wasn't requested"),
    ):
        Endpoint(url, timeout=10).call(("eth_chainId", ()))


@pytest.mark.parametrize("method", ["eth_chainId", "eth_getTransactionCount", "eth_call"])
def test_a_small_question_has_a_small_answer(method: str) -> None:
    with (
        served(Liar(method, 64)) as url,
        costing(12 * MB),
        pytest.raises(TryAgain, match="too large"),
    ):
        Endpoint(url, timeout=10).call((method, ()))


def test_logs_of_a_range_that_are_too_many_are_requested_in_smaller_ones() -> None:
    with served(Liar("eth_getLogs", 17)) as url:
        node = HttpNode(1, "liar", Endpoint(url, timeout=10))
        with pytest.raises(RangeTooLarge) as refused:
            node.logs(WANTED, 1, 1000)
    assert not refused.value.is_structural


def test_the_logs_of_one_block_may_be_as_many_as_its_gas_is_enough_for() -> None:
    item = [("eth_getLogs", [{"fromBlock": "0x7", "toBlock": "0x7"}])]
    several = [("eth_getLogs", [{"fromBlock": "0x7", "toBlock": "0x8"}])]
    assert response_sizes.largest(item) == response_sizes.largest(
        [("eth_getLogs", [{"blockHash": HASH}])]
    )
    assert (
        response_sizes.largest(item)
        > response_sizes.largest(item * 100)
        > response_sizes.largest(several)
    )
    assert response_sizes.largest(several) < 20 * MB


def test_a_receipt_that_is_too_large_holds_up_no_other() -> None:
    liar = Liar("eth_getTransactionReceipt", 65)
    with served(liar) as url:
        endpoint = Endpoint(url, timeout=10)
        calls = [("eth_getTransactionReceipt", (HASH,)), ("eth_getCode", (HASH, "latest"))] * 2
        batch = endpoint.batch(calls, [Any] * 4)
    assert [isinstance(item, Refused) for item in batch] == [True, False, True, False]
    assert batch[1::2] == [None, None]
    assert endpoint.batch_size == 100, "the number of calls wasn't what was wrong"
    assert endpoint.health.failures == 0


def test_of_receipts_only_what_is_wanted_is_decoded() -> None:
    class Wordy(Liar):
        def answer(self, request: Any) -> bytes | None:
            log = {"address": HASH, "topics": [HASH] * 4, "data": HASH}
            receipt = {
                "transactionHash": HASH,
                "blockHash": HASH,
                "blockNumber": "0x1",
                "transactionIndex": "0x0",
                "gasUsed": "0x1",
                "effectiveGasPrice": "0x1",
                "from": f"0x{'11' * 20}",
                "logs": [log] * 10_000,
            }
            return json.dumps({"id": request["id"], "result": receipt}).encode()

    with served(Wordy("", 1)) as url:
        node = HttpNode(1, "wordy", Endpoint(url, timeout=10))
        receipts = node_requests.receipts(node, [HASH])
    mined = receipts[HASH]
    assert mined is not None
    assert mined.block_number == 1


def block(number: int, hashes: int) -> dict[str, Any]:
    return {
        "number": hex(number),
        "hash": f"0x{number:064x}",
        "parentHash": f"0x{number - 1:064x}",
        "transactions": [f"0x{at:064x}" for at in range(hashes)],
    }


class Padding(Liar):
    """Blocks with very many transactions, and receipts with very many logs."""

    def __init__(self, hashes: int, *, logs: int = 0) -> None:
        super().__init__("", 1)
        self.hashes = hashes
        self.logs = logs

    def result(self, call: Any) -> Any:
        if call["method"] != "eth_getBlockReceipts":
            return block(int(call["params"][0], 16), self.hashes)
        number = int(call["params"][0], 16)
        log = {
            **{"address": f"0x{'11' * 20}", "topics": [HASH], "data": "0x", "logIndex": "0x0"},
            **{"blockNumber": hex(number), "blockHash": HASH, "transactionHash": HASH},
            "transactionIndex": "0x0",
        }
        receipt = {
            **{"transactionHash": HASH, "blockHash": f"0x{number:064x}", "status": "0x1"},
            **{"blockNumber": hex(number), "cumulativeGasUsed": "0x1", "logs": [log] * 100},
        }
        return [receipt] * (self.logs // 100)

    def answer(self, request: Any) -> bytes | None:
        calls = request if isinstance(request, list) else [request]
        message = [{"id": call["id"], "result": self.result(call)} for call in calls]
        return json.dumps(message if isinstance(request, list) else message[0]).encode()


def test_of_many_blocks_with_many_transactions_not_all_hashes_are_held() -> None:
    with served(Padding(40_000)) as url:
        node = HttpNode(1, "padding", Endpoint(url, timeout=60))
        headers = node.headers(range(1, 13))
        held = [header.height for header in headers if header and header.transactions is not None]
        assert held == [1, 2, 3, 4, 5, 6]
        last = headers[-1]
        assert last is not None
        assert len(node.transactions_in(last)) == 40_000


@pytest.mark.parametrize(("logs", "are_held"), [(200, True), (8_000, False)])
def test_the_receipts_of_a_large_block_are_decoded_when_they_are_read(
    logs: int, are_held: bool
) -> None:
    with served(Padding(0, logs=logs)) as url:
        node = HttpNode(1, "padding", Endpoint(url, timeout=60))
        headers = [item for item in node.headers(range(1, 4)) if item]
        for header, receipts in zip(headers, node.block_receipts(headers), strict=True):
            assert receipts is not None
            assert (receipts[0] is receipts[0]) == are_held
            assert receipts[0] == receipts[-1]
            assert [item.block_hash for item in receipts] == [header.hash] * (logs // 100)
            assert [len(item.logs) for item in receipts[:2]] == [100, 100]


def test_a_result_that_should_be_small_is_not_decoded_into_many_objects() -> None:
    class Nested(Liar):
        def answer(self, request: Any) -> bytes | None:
            return b'{"id":%d,"result":[' % request["id"] + b"[]," * 300_000 + b"[]]}"

    with (
        served(Nested("", 1)) as url,
        costing(10 * MB),
        pytest.raises(TryAgain, match="larger than any of its kind"),
    ):
        Endpoint(url, timeout=10).call(("eth_feeHistory", ()))


def test_a_text_may_be_large() -> None:
    class Wordy(Liar):
        def answer(self, request: Any) -> bytes | None:
            return json.dumps({"id": request["id"], "result": "0x" + "00" * MB}).encode()

    with served(Wordy("", 1)) as url:
        response = Endpoint(url, timeout=10).call(("eth_call", ()))
    assert len(response) == 2 * MB + 2


def test_a_signing_service_s_answer_has_an_end() -> None:
    with served(Liar("", 8)) as url, costing(4 * MB), pytest.raises(CannotSign, match="too large"):
        _ = RemoteSigner(url).address
