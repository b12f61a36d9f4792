"""A real realtime process: limits, slow readers, addresses behind the proxy, stopping."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import stat
from collections.abc import Iterator

import psutil
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from realtime.process.reports import processes
from tests.realtime.server_process import RawClient, Serving, close_code, eventually, serving

pytestmark = [pytest.mark.process, pytest.mark.django_db]

ECHO = ("tests.realtime.echo_process",)
TEXT, PING, CONTINUED = 1, 9, 0
TOO_LARGE, TOO_SLOW = b"\x03\xf1", b"\x03\xf5"  # as closes have them


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Serving]:
    """One process for all that doesn't end it."""
    with serving(
        tmp_path_factory.mktemp("sockets"),
        ECHO,
        WS_MAX_PER_ADDRESS="3",
        WS_ALLOWED_ORIGINS="https://app.example.org",
        WS_MESSAGE_SIZE="2000",
        WS_SEND_QUEUE="200000",
        WS_PING_INTERVAL="1",
        WS_PING_TIMEOUT="4",  # for clients on a machine that is busy with other things
    ) as server:
        yield server


def count(process: Serving) -> int:
    """Return the number of connected clients, without the requesting one."""
    with process.connect("/echo") as client:
        client.send("count")
        return int(client.recv(20)) - 1


@pytest.mark.slow
def test_only_health_and_readiness_are_served_over_http(process):
    assert process.http_get("/health") == (200, b'{"status":"ok"}')
    eventually(lambda: process.http_get("/ready")[0] == 200)
    assert process.http_get("/api/classes/Game")[0] == 404


@pytest.mark.parametrize(
    "path", ["/ws", "/ws/", "/livequery", "/livequery/", "/api", "/api/", "/", ""]
)
def test_sockets_are_served_at_the_documented_paths(process, path):
    with process.connect(path) as client:
        client.send("ping")
        assert client.recv(20) == "pong"


@pytest.mark.parametrize("path", ["/ws/more", "/wsx", "/api/classes"])
def test_other_paths_serve_no_socket(process, path):
    with pytest.raises(InvalidStatus) as refused:
        process.connect(path)
    assert refused.value.response.status_code == 404
    assert json.loads(refused.value.response.body)["code"] == 108


def test_a_rejected_handshake_has_a_status_and_the_json_error_of_rest(process):
    with pytest.raises(InvalidStatus) as refused:
        process.connect("/ws", origin="https://evil.example")
    answer = refused.value.response
    assert answer.status_code == 403
    assert json.loads(answer.body)["code"] == 119
    assert answer.headers["content-type"] == "application/json"


def test_connections_are_limited_by_the_address_that_the_proxy_reports(process):
    clients = [process.connect("/echo", address="1.2.3.4, 198.51.100.7") for _ in range(3)]
    clients[0].send("address")
    assert clients[0].recv(20) == "198.51.100.7"
    with pytest.raises(InvalidStatus) as refused:
        process.connect("/echo", address="198.51.100.7")
    assert refused.value.response.status_code == 429
    assert int(refused.value.response.headers["retry-after"]) > 0
    for client in clients:
        client.close()


def test_messages_are_not_compressed(process):
    client = RawClient(process.socket)
    assert b" 101 " in client.head
    assert b"extensions" not in client.head.lower()
    client.socket.close()


def test_a_message_above_the_size_limit_closes_the_connection(process):
    with process.connect("/echo") as client:
        client.send("x" * 2000)
        assert client.recv(20) == "x" * 2000
        client.send("x" * 2001)
        assert close_code(client) == 1009
    with process.connect("/echo") as client:
        with contextlib.suppress(
            ConnectionClosed
        ):  # which may come while the last fragment is sent
            client.send(["x" * 999, "x" * 999, "x" * 999])
        assert close_code(client) == 1009


def test_endless_empty_fragments_close_the_connection(process):
    client = RawClient(process.socket)
    client.send(TEXT, b"x", last=False)
    for _ in range(1_001):
        client.send(CONTINUED, last=False)
    assert TOO_LARGE in client.read(until=TOO_LARGE)
    client.socket.close()


def test_endless_pings_close_the_connection(process):
    client = RawClient(process.socket)
    with pytest.raises(OSError, match=r"."):  # noqa: PT012
        for _ in range(200_000):
            client.send(PING, b"x" * 100)
    client.socket.close()


@pytest.mark.slow
def test_a_client_that_answers_no_ping_is_disconnected(process):
    client = RawClient(process.socket)
    client.read()
    assert eventually(lambda: count(process) == 0)
    client.socket.close()


def test_a_client_that_does_not_read_is_closed_and_delays_no_other(process):
    eventually(lambda: count(process) == 0)
    slow = RawClient(process.socket)
    with process.connect("/echo") as fast:
        for _ in range(12):
            fast.send("all 1 50000")
            assert len(fast.recv(20)) == 50_000
        fast.send("count")
        # The slow one is no longer a receiver, whether it has read its close or not.
        assert int(fast.recv(20)) <= 2
        assert TOO_SLOW in slow.read(until=TOO_SLOW)
        slow.socket.close()
    eventually(lambda: count(process) == 0)


def test_only_its_account_reaches_the_socket_and_the_file_limit_is_raised(
    process,
):
    assert stat.S_IMODE(os.stat(process.socket).st_mode) == 0o600
    soft, hard = psutil.Process(process.process.pid).rlimit(psutil.RLIMIT_NOFILE)
    assert soft == hard


def test_a_disconnect_during_a_request_is_noticed_and_pending_messages_are_dropped(process):
    def waits() -> int:
        with process.connect("/echo") as client:
            client.send("waits")
            return int(client.recv(20))

    eventually(lambda: count(process) == 0)
    client = RawClient(process.socket)
    for _ in range(100):
        client.send(TEXT, b"wait")
    eventually(lambda: waits() == 1)
    assert count(process) == 1
    client.socket.close()
    eventually(lambda: count(process) == 0)
    with process.connect("/echo") as other:
        other.send("go on")
        other.send("waits")
        assert other.recv(20) == "1"


@pytest.mark.slow
def test_a_terminated_process_closes_its_clients_and_ends_soon(tmp_path):
    with serving(tmp_path, ECHO) as process:
        clients = [process.connect(path) for path in ("/ws", "/livequery", "/echo", "/echo")]
        # One that reads nothing, and has something waiting for it.
        deaf = RawClient(process.socket)
        clients[-1].send("all 1 400000")
        eventually(lambda: len(clients[-1].recv(20)) == 400_000)
        process.process.send_signal(signal.SIGTERM)
        assert [close_code(client) for client in clients] == [1001] * 4
        assert process.process.wait(30) == 0
        deaf.socket.close()


@pytest.mark.slow
def test_several_processes_share_one_address_and_a_dead_one_is_replaced(tmp_path):
    with serving(tmp_path, REALTIME_WORKERS="2") as process:
        full = psutil.Process(process.process.pid)

        def workers() -> set[int]:
            return {item["pid"] for item in processes()} & {
                item.pid for item in full.children(recursive=True)
            }

        eventually(lambda: len(workers()) == 2)
        first = min(workers())
        psutil.Process(first).kill()
        eventually(lambda: len(workers() - {first}) == 2)
        with process.connect("/ws") as client:
            process.process.send_signal(signal.SIGTERM)
            assert close_code(client) == 1001
        assert process.process.wait(60) == 0


KEY = b"AAAAAAAAAAAAAAAAAAAAAA==\r\n"


@pytest.mark.parametrize(
    "message",
    [
        b"\x00\xff\x16\x03\x01",
        b"GET /ws\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        b"GET /%ff%00 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        b"GET /ws HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
    ],
    ids=["no HTTP", "bytes", "no key", "version", "path", "header", "body"],
)
def test_an_invalid_handshake_is_rejected(process, message):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(process.socket))
        client.sendall(message)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(4096):
                answer += piece
    assert b" 101 " not in answer
    assert b"Traceback" not in answer
    assert process.http_get("/health")[0] == 200


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        (b"Sec-WebSocket-Version: 13\r\n", 400, "Sec-WebSocket-Key"),
        (b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n", 400, "Sec-WebSocket-Key"),
        (b"Sec-WebSocket-Version: 12\r\nSec-WebSocket-Key: " + KEY, 400, "Sec-WebSocket-Version"),
        (b"Sec-WebSocket-Version: \xff\r\nSec-WebSocket-Key: " + KEY, 400, "Sec-WebSocket-Version"),
        (b"Sec-WebSocket-Key: " + KEY, 400, "Sec-WebSocket-Version"),
    ],
    ids=["no key", "short key", "version 12", "no text", "no version"],
)
@pytest.mark.parametrize("path", [b"/ws", b"/parse"])
def test_a_handshake_that_is_not_one_gets_the_json_error_of_rest(
    process, path, fields, status, reason
):
    head = b"GET %b HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" % path
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(process.socket))
        client.sendall(head + fields + b"\r\n")
        response = http.client.HTTPResponse(client)
        response.begin()
        body = json.loads(response.read())
    assert (response.status, body["code"]) == (status, 108)
    assert reason in body["error"]
    assert response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    "frames",
    [b"\x81\x01x", b"\xc1\x81\0\0\0\0x", b"\x83\x80\0\0\0\0", b"\x81\x81\0\0\0\0\xff"],
    ids=["unmasked", "reserved bits", "unknown opcode", "no UTF-8"],
)
def test_frames_against_the_protocol_close_the_connection(process, frames):
    client = RawClient(process.socket)
    client.socket.sendall(frames)
    assert client.first_byte() == b"\x88"
    client.socket.close()
