"""A server that sends bytes at wrong moments: interim responses, second ones, late ones."""

from __future__ import annotations

import random
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

Answer = Callable[[bytes, bytes], bytes]
"""The body of a response, from the head and the body of its request."""

INTERIM: Final = (
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 102 Processing\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n",
    b"HTTP/1.1 199 Odd\r\nContent-Length: 5\r\n\r\n",
)
WHOLE: Final = ("plain", "chunked", "interim", "slow interim")
"""What a client has to understand."""
FAULTS: Final = (
    *("twice", "surplus", "later", "early", "short", "long", "torn chunks"),
    *("switched", "closed", "until the end", "two lengths"),
)
LATE: Final = "late"
"""The response comes when the client has given up."""


class ConfusingServer:
    """``moments`` are what it may do with a request; ``url`` is its address."""

    def __init__(self, answer: Answer, seed: int) -> None:
        self.moments: tuple[str, ...] = ("plain",)
        self.used: set[str] = set()
        self._answer = answer
        self._random = random.Random(seed)
        self._busy = 0
        self._changed = threading.Condition()
        server = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                # Everything arrives before the next request: later, no client could tell.
                self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with suppress(OSError):
                    while server._serve(self.request):
                        pass

        self._tcp = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._tcp.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._tcp.server_address[1]}"

    def settle(self) -> None:
        """Wait until everything is sent that requests of before have caused."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self._busy, 20)

    def _serve(self, wire: socket.socket) -> bool:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = wire.recv(65_536)
            if not piece:
                return False
            head += piece
        with self._changed:
            self._busy += 1
            moment = self._random.choice(self.moments)
            self.used.add(moment)
        try:
            return self._respond(wire, moment, head)
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def _respond(self, wire: socket.socket, moment: str, head: bytes) -> bool:
        head, _, body = head.partition(b"\r\n\r\n")
        missing = _length(head) - len(body)
        while missing > 0:
            piece = wire.recv(missing)
            if not piece:
                return False
            body += piece
            missing -= len(piece)
        content = self._answer(head, body)
        plain = _response(content, len(content))
        interim = b"".join(INTERIM[i] for i in range(self._random.randint(1, len(INTERIM))))
        chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
        chunked = chunks % (len(content), content)
        match moment:
            case "plain":
                wire.sendall(plain)
            case "chunked":
                wire.sendall(chunked)
            case "interim":
                wire.sendall(interim + plain)
            case "slow interim":
                wire.sendall(interim)
                threading.Event().wait(0.02)  # the next request would come meanwhile
                wire.sendall(plain)
            case "twice":
                wire.sendall(plain * 2)
            case "surplus":
                wire.sendall(plain + plain[: self._random.randrange(1, len(plain))])
            case "later":
                wire.sendall(plain)
                wire.sendall(plain)
            case "early":
                wire.sendall(plain[:20])
                wire.sendall(plain[20:] + interim)
            case "short":
                wire.sendall(_response(content, len(content) // 2))
            case "long":
                wire.sendall(_response(content, len(content) + 9))
                return False
            case "torn chunks":
                wire.sendall(chunked[:-7] + plain)
            case "switched":
                wire.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + plain)
            case "closed":
                return False
            case "until the end":
                wire.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + content)
                return False
            case "two lengths":
                lengths = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Length: 3\r\n\r\n"
                wire.sendall(lengths % len(content) + content)
            case "late":
                wire.settimeout(5)
                wire.recv(1)  # until the client has closed the connection
                wire.sendall(plain)
        return True


def _response(content: bytes, length: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (length, content)


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


@contextmanager
def confusing(answer: Answer, seed: int) -> Iterator[ConfusingServer]:
    """Serve until the block ends."""
    server = ConfusingServer(answer, seed)
    thread = threading.Thread(target=server._tcp.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server._tcp.shutdown()
        server._tcp.server_close()
        thread.join()
