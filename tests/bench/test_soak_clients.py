"""Clients of a soak notice every failure, and count it or end the soak."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.server import Server, ServerConnection, serve

from bench.failure import BenchFailure
from bench.soak.clients import Miner, Person, Rest, Sockets
from bench.soak.command import total_size
from bench.whole import MASTER_KEY
from tests.polling import until

PATIENCE = 30.0


def response(body: bytes, status: bytes = b"200 OK", length: int | None = None) -> bytes:
    """A response of HTTP; a ``length`` other than the body's cuts it off."""
    size = len(body) if length is None else length
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
        status,
        size,
        body,
    )


BROKEN = {
    "no status line": b"nonsense\r\n\r\n",
    "a body that is cut off": response(b"{}", length=100),
    "a chunk that is cut off": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    "nothing": b"",
    "no JSON": response(b"{"),
    "an error": response(b"{}", status=b"503 Unavailable"),
}


GOOD = response(b'{"objectId": "a", "sessionToken": "r:a", "name": "a"}')


@contextlib.contextmanager
def http_server(responses: Sequence[bytes]) -> Iterator[int]:
    """The port of a server that responds with these in turn, each on a connection of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def work() -> None:
            for response in itertools.cycle(responses):
                connection, _ = listener.accept()
                if over.is_set():
                    connection.close()
                    return
                with connection, contextlib.suppress(ConnectionError):
                    connection.recv(65_536)
                    connection.sendall(response)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65_536):
                        pass

        thread = threading.Thread(target=work)
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield port
        finally:
            over.set()
            socket.create_connection(("127.0.0.1", port)).close()
            thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_response_that_is_no_success_counts_as_failed(broken: bytes):
    with http_server([broken]) as port:
        done, failed, _ = Person(port, {}).round()
    assert done == failed > 0


def test_a_client_goes_on_after_a_broken_response():
    with http_server([BROKEN["no status line"], GOOD]) as port:
        done, failed, _ = Person(port, {MASTER_KEY: "x"}).round()
    assert 0 < failed < done


def test_a_client_that_ends_ends_the_soak():
    with http_server([response(b'{"id":"a"}')]) as port:
        remaining = Rest(port, {}, processes=1, threads=1)
        remaining.start()
        try:
            until(lambda: raises(remaining.count), PATIENCE)
        finally:
            remaining.stop()


def raises(work: Callable[[], Any]) -> bool:
    try:
        work()
    except BenchFailure:
        return True
    return False


class BrokenContract:
    """A contract whose node is away."""

    def transact(self, *arguments: object, **options: object) -> None:
        raise ConnectionRefusedError


def test_a_miner_that_ends_ends_the_soak():
    miner = Miner(BrokenContract())  # type: ignore[arg-type]
    miner.start()
    until(lambda: raises(miner.check), PATIENCE)
    miner.stop()
    with pytest.raises(BenchFailure, match="Miner has ended: ConnectionRefusedError"):
        miner.check()


@contextlib.contextmanager
def socket_server(handler: Callable[[ServerConnection], None]) -> Iterator[int]:
    """The port of a server of WebSockets."""
    server: Server
    with serve(handler, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join(PATIENCE)


@contextlib.contextmanager
def sockets(port: int) -> Iterator[Sockets]:
    clients = Sockets(port, {}, 1)
    clients.start()
    try:
        yield clients
        clients.check()
    finally:
        clients.stop()


def test_connections_and_messages_of_sockets_are_counted():
    over = threading.Event()

    def handler(connection: ServerConnection) -> None:
        for _ in range(3):
            connection.send("{}")
        over.wait(PATIENCE)

    with socket_server(handler) as port, sockets(port) as clients:
        until(lambda: clients.messages == 3, PATIENCE)
        assert (clients.connections, clients.failures) == (1, 0)
        over.set()


def test_a_socket_that_the_server_closes_counts_as_failed():
    with socket_server(lambda connection: connection.close()) as port, sockets(port) as clients:
        until(lambda: clients.failures > 1, PATIENCE)
        assert clients.connections > 1


def test_a_socket_that_is_refused_counts_as_failed():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with sockets(port) as clients:
        until(lambda: clients.failures > 1, PATIENCE)
        assert clients.connections == 0


def test_a_file_that_is_renamed_meanwhile_counts_nothing(tmp_path: Path):
    (tmp_path / "stays").write_bytes(b"x" * 5)
    (tmp_path / "folder").mkdir()
    paths = [*tmp_path.iterdir(), tmp_path / "renamed"]
    assert total_size(paths) == 5
