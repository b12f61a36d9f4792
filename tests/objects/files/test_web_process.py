"""Uploads and downloads through a real web process."""

from __future__ import annotations

import base64
import http.client
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from tests.other_process import OtherProcess
from tests.rest import MASTER

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("emptied"),
    pytest.mark.xdist_group("web"),
]

PIECE = b"0123456789abcdef" * 4096
SIZE = 20 * 1024 * 1024


@pytest.fixture(autouse=True)
def empty_storage() -> None:
    """The other process has a storage of its own."""


def request(
    other: OtherProcess, method: str, path: str, body: Any = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", other.port, timeout=60)
    try:
        connection.request(method, f"/api{path}", body, {**MASTER, **headers})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def pieces(size: int) -> Iterator[bytes]:
    for _ in range(size // len(PIECE)):
        yield PIECE
    yield PIECE[: size % len(PIECE)]


def uploaded(other: OtherProcess, size: int = SIZE) -> str:
    """Send a chunked upload; the name that it has been given."""
    response, _ = request(other, "POST", "/files/a.bin", pieces(size))
    assert response.status == 201
    name: str = response.headers["Location"].rpartition("/")[2]
    return name


def remove(other: OtherProcess, *names: str) -> None:
    for name in names:
        assert request(other, "DELETE", f"/files/{name}")[0].status == 200


def web_processes() -> list[psutil.Process]:
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if "backend.serve" in process.cmdline()
    ]


def resident() -> int:
    """The memory of the web process, its worker included, in bytes."""
    return sum(process.memory_info().rss for process in web_processes())


class Peak:
    """The most memory that the web process has while the block runs."""

    def __enter__(self) -> Peak:
        self.before = self.most = resident()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.most = max(self.most, resident())

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def growth(self) -> int:
        return self.most - self.before


@pytest.mark.slow
def test_eight_uploads_at_once_take_little_memory(other):
    remove(other, uploaded(other))  # everything that is created once exists now
    with Peak() as peak, ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: uploaded(other), range(8)))
    print(f"8 uploads of 20 MB: {peak.before >> 20} MB before, {peak.growth >> 20} MB more at most")
    assert len(set(names)) == 8
    assert peak.growth < SIZE
    with Peak() as peak, ThreadPoolExecutor(8) as pool:
        sizes = list(
            pool.map(lambda name: len(request(other, "GET", f"/files/test-app/{name}")[1]), names)
        )
    print(f"8 downloads: {peak.growth >> 20} MB more at most")
    assert sizes == [SIZE] * 8
    assert peak.growth < SIZE
    remove(other, *names)


@pytest.mark.slow
def test_uploads_in_json_dont_stay_in_memory(other):
    content = base64.b64encode(b"".join(pieces(SIZE)))
    keys = b'{"_ApplicationId": "test-app", "_MasterKey": "test-master-key", "base64": "'
    body = keys + content + b'"}'

    def send(_: int) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", other.port, timeout=60)
        connection.request("POST", "/api/files/a.bin", body)
        response = connection.getresponse()
        assert response.status == 201
        connection.close()
        return str(response.headers["Location"]).rpartition("/")[2]

    with Peak() as peak, ThreadPoolExecutor(8) as pool:
        names = list(pool.map(send, range(8)))
    print(f"8 uploads of 20 MB in JSON: {peak.growth >> 20} MB more at most")
    remove(other, *names)
    # What is read of the bodies' files counts as memory while it is read.
    assert peak.growth < 4 * len(body) * 5 // 4
    assert resident() - peak.before < SIZE


def test_what_comes_in_goes_out(other):
    name = uploaded(other, 1_000_001)
    response, body = request(other, "GET", f"/files/test-app/{name}")
    assert body == b"".join(pieces(1_000_001))
    response, body = request(other, "GET", f"/files/test-app/{name}", Range="bytes=65535-65536")
    assert (response.status, body) == (206, PIECE[-1:] + PIECE[:1])
    response, body = request(other, "HEAD", f"/files/test-app/{name}")
    assert (response.status, body, response.headers["Content-Length"]) == (200, b"", "1000001")
    etag = response.headers["ETag"]
    response, body = request(other, "GET", f"/files/test-app/{name}", **{"If-None-Match": etag})
    assert (response.status, body) == (304, b"")
    remove(other, name)


def test_too_much_is_refused_before_all_of_it_has_come(other):
    with socket.create_connection(("127.0.0.1", other.port), timeout=30) as client:
        head = "".join(f"{name}: {value}\r\n" for name, value in MASTER.items())
        client.sendall(
            f"POST /api/files/a.bin HTTP/1.1\r\nHost: x\r\n{head}"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        sent = 0
        chunk = b"%x\r\n%b\r\n" % (len(PIECE), PIECE)
        while sent <= SIZE:
            client.sendall(chunk)
            sent += len(PIECE)
        # The end of the body is never sent.
        answer = client.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"code":129' in answer


def test_an_announced_length_is_refused_at_once(other):
    with socket.create_connection(("127.0.0.1", other.port), timeout=30) as client:
        head = "".join(f"{name}: {value}\r\n" for name, value in MASTER.items())
        client.sendall(
            f"POST /api/files/a.bin HTTP/1.1\r\nHost: x\r\n{head}"
            f"Content-Length: {SIZE + 1}\r\n\r\n".encode()
        )
        answer = client.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413")
