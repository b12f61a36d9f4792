"""A load of clients in a process of its own: reads frames from many sockets as cheaply as it can.

``python -m bench.realtime.receiver ADDRESS CLIENTS SECONDS [PATH]``, with an address as
``host:port`` or ``unix:/path``. Prints ``open`` when all are connected, measures from then on, and
prints one line of JSON. Frames begin with ``{"t":"…"``, sixteen digits of CLOCK_MONOTONIC in
microseconds.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import select
import socket
import sys
import time
from array import array

_HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n{more}\r\n"
)
_PING = 0x9
_CLOSE = 0x8


class Client:
    """One socket, after its handshake."""

    def __init__(self, address: str, path: str, more: str = "") -> None:
        if address.startswith("unix:"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(address.removeprefix("unix:"))
        else:
            host, _, port = address.rpartition(":")
            self.socket = socket.create_connection((host, int(port)))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(_HANDSHAKE.format(path=path, key=key, more=more).encode())
        self.rest = b""
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError("closed during the handshake")
            answer += piece
        head, _, self.rest = answer.partition(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise ConnectionError(head.split(b"\r\n", 1)[0].decode())
        self.socket.setblocking(False)
        self.closed: int | None = None

    def frames(self, data: bytes) -> list[bytes]:
        """The payloads of the text frames that are complete with this."""
        if self.rest:
            data = self.rest + data
        frames = []
        at, size = 0, len(data)
        while size - at >= 2:
            length = data[at + 1]
            begin = at + 2
            if length == 126:
                begin = at + 4
                length = int.from_bytes(data[at + 2 : begin], "big")
            elif length == 127:
                begin = at + 10
                length = int.from_bytes(data[at + 2 : begin], "big")
            if size < begin + length:
                break
            opcode = data[at] & 15
            payload = data[begin : begin + length]
            if opcode == 1:
                frames.append(payload)
            elif opcode == _PING:
                self.socket.send(bytes((0x8A, 0x80 | length)) + bytes(4) + payload)
            elif opcode == _CLOSE:
                self.closed = int.from_bytes(payload[:2], "big")
            at = begin + length
        self.rest = data[at:]
        return frames


def percentile(sorted_values: array[int], share: float) -> float:
    """In milliseconds."""
    if not sorted_values:
        return 0.0
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))] / 1000


def main() -> None:
    address, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    path = sys.argv[4] if len(sys.argv) > 4 else "/"
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    poll = select.epoll()
    clients: dict[int, Client] = {}
    for _ in range(count):
        client = Client(address, path)
        clients[client.socket.fileno()] = client
        poll.register(client.socket, select.EPOLLIN)
    print("open", flush=True)
    latencies = array("q")
    end = time.monotonic() + seconds
    begin_cpu = time.process_time()
    lost = 0
    while time.monotonic() < end:
        for number, _ in poll.poll(0.1, 512):
            client = clients[number]
            data = client.socket.recv(262_144)
            if not data:
                lost += 1
                poll.unregister(number)
                continue
            now = time.monotonic_ns() // 1000
            for payload in client.frames(data):
                latencies.append(now - int(payload[6:22]))
    ordered = array("q", sorted(latencies))
    print(
        json.dumps(
            {
                "received": len(latencies),
                "p50": percentile(ordered, 0.5),
                "p99": percentile(ordered, 0.99),
                "max": percentile(ordered, 1.0),
                "lost": lost,
                "cpu": time.process_time() - begin_cpu,
            }
        )
    )


if __name__ == "__main__":
    main()
