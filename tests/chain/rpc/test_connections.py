"""An answer has to be there in time, however steadily it comes."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import pytest

from chain.core.failures import TryAgain
from chain.rpc.client.json_rpc import Endpoint
from tests.evm.node import Node

HEAD = b"HTTP/1.1 200 OK\r\n"
ENDLESS = {
    "header": (HEAD + b"X-Name: ", b"a"),
    "status": (b"HTTP/1.1 ", b"2"),
    "patience": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": (HEAD + b"\r\n", b" "),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}


@contextmanager
def dripping(first: bytes, again: bytes) -> Iterator[str]:
    """The address of a server that answers with ``first``, and ``again`` for ever."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                self.request.recv(65_536)
                self.request.sendall(first)
                while not over.wait(0.02):
                    self.request.sendall(again)
            except OSError:
                pass  # who has asked is gone

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            over.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("part", ENDLESS)
def test_who_answers_for_ever_is_left(part: str) -> None:
    with dripping(*ENDLESS[part]) as url:
        began = monotonic()
        with pytest.raises(TryAgain):
            Endpoint(url, timeout=0.3).call(("eth_chainId", ()))
        assert monotonic() - began < 10


def test_each_answer_of_a_connection_has_its_own_time(node: Node) -> None:
    endpoint = Endpoint(node.url, timeout=1.5)
    until = monotonic() + 1.7
    while monotonic() < until:
        assert endpoint.call(("eth_chainId", ())) == hex(node.chain_id)
