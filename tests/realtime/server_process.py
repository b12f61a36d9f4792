"""A realtime process of its own on the database of the test run, and clients for it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psutil
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, unix_connect

from backend.probe import SocketConnection
from tests.other_process import database_url

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60  # seconds, for a machine that is busy with other things

T = TypeVar("T")


class Serving:
    """A running realtime process behind a Unix socket, where the proxy would be."""

    def __init__(self, socket: Path, process: subprocess.Popen[bytes]) -> None:
        self.socket = socket
        self.process = process
        self.memory = psutil.Process(process.pid).memory_info

    def connect(self, path: str = "/ws", **options: Any) -> ClientConnection:
        """A client. ``address`` is its own, as the proxy tells it."""
        headers = dict(options.pop("additional_headers", {}))
        if "address" in options:
            headers["X-Forwarded-For"] = options.pop("address")
        options.setdefault("compression", None)
        options.setdefault("legacy", True)  # usable with and without a block
        uri = f"ws://localhost{path}"
        return unix_connect(
            str(self.socket), uri, additional_headers=headers, open_timeout=PATIENCE, **options
        )

    def ask(self, path: str) -> tuple[int, bytes]:
        """Status and body of a request over HTTP."""
        connection = SocketConnection(str(self.socket))
        try:
            connection.request("GET", path, headers={"Host": "localhost"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextmanager
def serving(
    folder: Path, command: tuple[str, ...] = ("backend.serve", "realtime"), **settings: str
) -> Iterator[Serving]:
    """Start a realtime process with these settings, and stop it when the block ends."""
    path = folder / "realtime.sock"
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "REALTIME_BIND": f"unix:{path}",
        "LOG_LEVEL": "WARNING",
        "PROCESS": "realtime",
        **settings,
    }
    process = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, env=environment)
    try:
        results = Serving(path, process)
        eventually(lambda: process.poll() is not None or _answers(results))
        assert process.poll() is None, "the realtime process ended"
        yield results
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(results: Serving) -> bool:
    try:
        return results.ask("/health")[0] == 200
    except OSError:
        return False


def eventually(condition: Callable[[], T], patience: float = PATIENCE) -> T:
    """The condition's value once it is true."""
    end = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < end, "it doesn't come true"
        between_looks = 0.02
        time.sleep(between_looks)
    return value


class RawClient:
    """A passive client: answers no ping, reads only when a test lets it."""

    def __init__(self, path: Path, target: str = "/echo") -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(path))
        self.socket.sendall(
            f"GET {target} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n".encode()
        )
        self.head = b""
        while b"\r\n\r\n" not in self.head:
            self.head += self.socket.recv(1)

    def send(self, opcode: int, payload: bytes = b"", *, last: bool = True) -> None:
        """One frame of up to 125 bytes."""
        first = (0x80 if last else 0) | opcode
        self.socket.sendall(bytes((first, 0x80 | len(payload))) + bytes(4) + payload)

    def first_byte(self) -> bytes:
        """Of the next frame that isn't one of the server's pings."""
        while (data := self.socket.recv(1)) == b"\x89":
            (length,) = self.socket.recv(1)
            self.socket.recv(length, socket.MSG_WAITALL)
        return data

    def read(self, until: bytes | None = None) -> bytes:
        """What comes until there is this, or until the connection ends."""
        results = b""
        with contextlib.suppress(ConnectionResetError):
            while until is None or until not in results:
                piece = self.socket.recv(65_536)
                if not piece:
                    break
                results += piece
        return results


def close_code(client: ClientConnection) -> int | None:
    """Read to the end; the code of the close that came from the server."""
    try:
        while True:
            client.recv(timeout=PATIENCE)
    except ConnectionClosed:
        return client.close_code
