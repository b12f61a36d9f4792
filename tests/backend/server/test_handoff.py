"""WebSockets by the web process's port: accepted there, served by the realtime process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.backend.server.running import Wire
from tests.other_process import OtherProcess, other_process
from tests.realtime.server_process import Serving, serving
from tests.rest import CLIENT

pytestmark = [pytest.mark.process, pytest.mark.django_db]

CONNECT = json.dumps({"op": "connect", "applicationId": "test-app", "restAPIKey": "test-rest-key"})


def handshake(path: str, more: str = "") -> bytes:
    return (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{more}\r\n"
    ).encode()


def text_frame(text: str) -> bytes:
    """A client's frame, masked with zeros."""
    payload = text.encode()
    assert len(payload) < 126
    return bytes((0x81, 0x80 | len(payload))) + bytes(4) + payload


class Client(Wire):
    def head(self) -> str:
        """The handshake's response, without reading a frame."""
        lines = []
        while (line := self._file.readline()) not in (b"\r\n", b""):
            lines.append(line.decode())
        return "".join(lines)

    def frame(self) -> Any:
        """The JSON of the next text frame."""
        while True:
            opcode, length = self._file.read(2)
            if length == 126:
                length = int.from_bytes(self._file.read(2), "big")
            payload = self._file.read(length)
            if opcode == 0x81:
                return json.loads(payload)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("handoff")


@pytest.fixture(scope="module")
def realtime(folder: Path, emptied: None, django_db_blocker: Any) -> Iterator[Serving]:
    with (
        django_db_blocker.unblock(),
        serving(
            folder,
            REALTIME_HANDOFF=str(folder / "handoff.sock"),
            WS_MAX_PER_ADDRESS="2",
            WS_REQUIRE_KEY="off",
        ) as process,
    ):
        yield process


@pytest.fixture(scope="module")
def web(folder: Path, emptied: None, django_db_blocker: Any) -> Iterator[OtherProcess]:
    path = str(folder / "handoff.sock")
    with django_db_blocker.unblock(), other_process(REALTIME_HANDOFF=path) as process:
        yield process


@pytest.mark.parametrize("path", ["/livequery", "/api", "/api/", "/"])
def test_live_queries_by_the_public_port(realtime: Serving, web: OtherProcess, path: str) -> None:
    with Client(web.port) as client:
        client.send(handshake(path))
        assert client.head().startswith("HTTP/1.1 101")
        client.send(text_frame(CONNECT))
        assert client.frame()["op"] == "connected"


def test_frames_that_come_with_the_handshake_are_not_lost(
    realtime: Serving, web: OtherProcess
) -> None:
    frame = text_frame(CONNECT)
    for cut in (0, 1, len(frame)):
        with Client(web.port) as client:
            client.send(handshake("/livequery") + frame[:cut], frame[cut:])
            assert client.head().startswith("HTTP/1.1 101")
            assert client.frame()["op"] == "connected"


def test_events_by_the_public_port(realtime: Serving, web: OtherProcess) -> None:
    with Client(web.port) as client:
        client.send(handshake("/ws", "".join(f"{name}: {CLIENT[name]}\r\n" for name in CLIENT)))
        assert client.head().startswith("HTTP/1.1 101")


def test_a_handshake_on_a_used_connection(realtime: Serving, web: OtherProcess) -> None:
    with Client(web.port) as client:
        client.send(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.response().status == 200
        client.send(handshake("/livequery"))
        assert client.head().startswith("HTTP/1.1 101")


def test_a_handshake_at_an_unknown_path_is_refused_in_json(
    realtime: Serving, web: OtherProcess
) -> None:
    with Client(web.port) as client:
        reply = client.send(handshake("/nowhere")).response()
        assert reply.error == (404, 108)


def test_limits_by_address_see_the_client_and_not_what_it_says(
    realtime: Serving, web: OtherProcess
) -> None:
    def connect(source: str, number: int) -> Client:
        client = Client(web.port, source)
        spoofed = f"X-Forwarded-For: 192.0.2.{number}\r\nX-Real-IP: 192.0.2.{number}\r\n"
        client.send(handshake("/livequery", spoofed))
        return client

    clients = [connect("127.0.0.9", number) for number in range(2)]
    assert all(client.head().startswith("HTTP/1.1 101") for client in clients)
    refused = connect("127.0.0.9", 3)
    assert refused.response().status == 429
    other = connect("127.0.0.10", 4)
    assert other.head().startswith("HTTP/1.1 101")
    for client in (*clients, refused, other):
        client.close()


def test_the_web_process_keeps_nothing_of_a_connection(
    realtime: Serving, web: OtherProcess
) -> None:
    def sockets(pid: int) -> int:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return sum(len(os.listdir(f"/proc/{child}/fd")) for child in children)

    with Client(web.port, "127.0.0.11") as client:
        before = sockets(web.pid)
        client.send(handshake("/livequery"))
        assert client.head().startswith("HTTP/1.1 101")
        client.send(text_frame(CONNECT))
        assert client.frame()["op"] == "connected"
        assert sockets(web.pid) <= before


def test_without_a_realtime_process_handshakes_are_503(web: OtherProcess, folder: Path) -> None:
    path = folder / "handoff.sock"
    aside = folder / "aside.sock"
    if path.exists():
        path.rename(aside)
    try:
        with Client(web.port) as client:
            reply = client.send(handshake("/livequery")).response()
            assert reply.error == (503, 1)
            assert int(reply.headers["retry-after"]) > 0
            assert client.rest() == b""
    finally:
        if aside.exists():
            aside.rename(path)


def test_a_plain_request_for_a_socket_path_is_answered(web: OtherProcess) -> None:
    with Client(web.port) as client:
        client.send(b"GET /livequery HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert 400 <= client.response().status < 500
