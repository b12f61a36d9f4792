"""A server in this process: its event loop in a thread, and an application that echoes."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPResponse
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar, cast
from urllib.parse import parse_qs

import uvloop

from backend.server.connection.protocol import Connection
from backend.server.context import Rules, Server
from backend.server.limits import Limits
from backend.server.process import serve_until
from backend.server.requests.request import Application
from backend.server.shares import ALONE, Share

T = TypeVar("T")

PATIENCE = 20.0
SMALL = Limits(
    max_connections=200,
    max_per_address=100,
    body_memory=4096,
    bodies_memory=1024 * 1024,
    spooled_per_address=4 * 1024 * 1024,
    spooled=8 * 1024 * 1024,
    unsent=32 * 1024 * 1024,
    pipelined=8,
    grace=1.0,
)
BODY_LIMIT = 1024 * 1024


@dataclass
class Stream:
    """An iterable response whose closing is counted."""

    pieces: Iterator[bytes]
    closed: int = 0
    has_closed: threading.Event = field(default_factory=threading.Event)

    def __iter__(self) -> Iterator[bytes]:
        return self.pieces

    def close(self) -> None:
        self.closed += 1
        self.has_closed.set()


class Echo:
    """The application. Paths choose what it does; everything else is echoed."""

    def __init__(self) -> None:
        self.started = threading.Semaphore(0)
        """Released by each request for ``/wait``, and by each ``/held-stream`` that is held."""
        self.gate = threading.Event()
        """What requests for ``/wait`` wait for."""
        self.streams: list[Stream] = []
        self.calls: list[str] = []

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        self.calls.append(path)
        query = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
        size = int(query.get("size", "0"))
        headers = [("Content-Type", "application/json")]
        if path == "/wait":
            self.started.release()
            assert self.gate.wait(PATIENCE)
        elif path == "/raise":
            raise RuntimeError("as an application may")
        elif path == "/exit":
            raise SystemExit(3)
        elif path == "/bad-header":
            start_response("200 OK", [("X-Number", cast(str, 5))])
            return [b"x"]
        elif path == "/held-stream":
            stream = Stream(self._held(size))
            self.streams.append(stream)
            start_response("200 OK", headers)
            return stream
        elif path in ("/stream", "/long", "/short", "/broken"):
            pieces = [b"x" * size] * int(query.get("pieces", "1"))
            stream = Stream(_break_off(pieces) if path == "/broken" else iter(pieces))
            self.streams.append(stream)
            if path != "/stream" and path != "/broken":
                off = 10 if path == "/short" else -10
                headers.append(("Content-Length", str(size * len(pieces) + off)))
            start_response("200 OK", headers)
            return stream
        elif path == "/big":
            start_response("200 OK", headers)
            return [b"x" * size]
        body = environ["wsgi.input"].read()
        answer = {
            "method": environ["REQUEST_METHOD"],
            "path": path,
            "query": environ["QUERY_STRING"],
            "address": environ["REMOTE_ADDR"],
            "length": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "headers": {
                name: value
                for name, value in environ.items()
                if name.startswith(("HTTP_", "CONTENT_"))
            },
        }
        start_response("200 OK", headers)
        return [json.dumps(answer).encode()]

    def _held(self, size: int) -> Iterator[bytes]:
        """The first piece at once, the second when ``gate`` is set."""
        yield b"x" * size
        self.started.release()
        assert self.gate.wait(PATIENCE)
        yield b"x" * size


def _break_off(pieces: list[bytes]) -> Iterator[bytes]:
    yield from pieces
    raise RuntimeError("as an iterator may")


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, int]:
        """Status and code of an error."""
        assert self.headers["content-type"] == "application/json"
        assert set(self.json) == {"code", "error"}
        return self.status, self.json["code"]


class _Shared(io.BufferedReader):
    """What several responses are read from, one after the other."""

    def close(self) -> None:
        return None

    def makefile(self, mode: str) -> io.BufferedReader:
        return self


class Wire:
    """A client that sends exactly the bytes it is given."""

    def __init__(self, port: int, source: str = "127.0.0.1", receive: int = 0) -> None:
        self.socket = socket.socket()
        if receive:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.socket.settimeout(PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", port))
        self._read_from(self.socket)

    def _read_from(self, source: socket.socket) -> None:
        self._file = _Shared(socket.SocketIO(source, "r"))

    def send(self, *data: bytes) -> Wire:
        for piece in data:
            self.socket.sendall(piece)
        return self

    def end(self) -> Wire:
        """Close the sending side."""
        self.socket.shutdown(socket.SHUT_WR)
        return self

    def response(self, method: str = "GET") -> Reply:
        """The next response; 100 Continue counts as one."""
        line = self._file.peek(32)[:12]
        if line.startswith(b"HTTP/1.1 100"):
            while self._file.readline() not in (b"\r\n", b""):
                continue
            return Reply(100, {}, b"")
        response = HTTPResponse(cast(socket.socket, self._file), method=method)
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, headers, response.read())

    def rest(self) -> bytes:
        """Everything until the server closes."""
        pieces = []
        try:
            while piece := self._file.read1(65_536):
                pieces.append(piece)
        except ConnectionResetError:
            pass
        return b"".join(pieces)

    def responses(self, method: str = "GET") -> list[Reply]:
        """All responses until the server closes."""
        replies = []
        while True:
            try:
                if not self._file.peek(1):
                    return replies
            except ConnectionResetError:
                return replies
            replies.append(self.response(method))

    def reset(self) -> None:
        """Vanish with a reset."""
        self.socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00"
        )
        self.close()

    def close(self) -> None:
        self.socket.close()

    def trickle_until_closed(self, meanwhile: Callable[[], object]) -> None:
        """Send a byte at a time until the server has closed the connection."""
        try:
            while True:
                self.send(b"x")
                meanwhile()
        except ConnectionError:
            return

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Running:
    """A running server."""

    def __init__(
        self, app: Echo, server: Server, loop: asyncio.AbstractEventLoop, port: int
    ) -> None:
        self.app = app
        self.server = server
        self.loop = loop
        self.port = port
        self.stop = asyncio.Event()

    def connect(self, source: str = "127.0.0.1", receive: int = 0) -> Wire:
        return Wire(self.port, source, receive)

    def exchange(self, *data: bytes, method: str = "GET") -> list[Reply]:
        """The responses to these bytes from a client that then closes its sending side."""
        with self.connect() as wire:
            return wire.send(*data).end().responses(method)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function in the event loop."""

        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(PATIENCE)

    def check(self, later: float) -> None:
        """Enforce the deadlines as if so many seconds had passed."""

        def run() -> None:
            for peer in self.server.connections.snapshot():
                peer.check(monotonic() + later)

        self.call(run)

    def wait_for(self, condition: Callable[[Server], object]) -> None:
        """Wait until a condition of the server, evaluated in its event loop, is true."""

        async def run() -> None:
            async with asyncio.timeout(PATIENCE):
                while not condition(self.server):
                    await asyncio.sleep(0.002)

        asyncio.run_coroutine_threadsafe(run(), self.loop).result(PATIENCE + 5)

    def is_clean(self) -> None:
        """Wait until nothing is left of any client."""
        self.wait_for(
            lambda server: (
                len(server.connections) == 0
                and server.spool.size == 0
                and server.spool.memory == 0
                and server.requests.load[:2] == (0, 0)
            )
        )


@contextmanager
def running(
    folder: Path,
    limits: Limits = SMALL,
    *,
    threads: int = 2,
    proxies: frozenset[str] = frozenset(),
    realtime: str = "",
    last_requests: float = 0,
    listener: socket.socket | None = None,
    share: Share = ALONE,
    prepare: Callable[[dict[str, Any]], object] = lambda _: None,
    application: Application | None = None,
    end_thread: Callable[[], None] = lambda: None,
    **changes: Any,
) -> Iterator[Running]:
    """A server on a free port of the loopback or on ``listener``, stopped when the block ends.

    ``application`` is one that echoes by default.
    """
    app = Echo()
    rules = Rules(
        application=application or app,
        is_proxy=lambda peer: peer in proxies,
        client_address=lambda environ: environ.get("HTTP_X_FORWARDED_FOR", environ["REMOTE_ADDR"]),
        body_limit=lambda environ: int(environ.get("HTTP_X_LIMIT", BODY_LIMIT)),
        answers_too_large=lambda environ: environ["PATH_INFO"].startswith("/own"),
        inline={"/health"},
        apart={"/ready"},
        spool_folder=lambda: folder,
        realtime=realtime,
        prepare=prepare,
        end_thread=end_thread,
    )
    if listener is None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    started: list[Running] = []
    has_started = threading.Event()

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = Server(loop, rules, replace(limits, **changes), threads, share)
        started.append(Running(app, server, loop, listener.getsockname()[1]))
        has_started.set()
        await serve_until(started[0].stop, server, [listener], last_requests)

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    assert has_started.wait(PATIENCE)
    try:
        yield started[0]
    finally:
        app.gate.set()
        started[0].loop.call_soon_threadsafe(started[0].stop.set)
        thread.join(PATIENCE)


def connections(server: Server) -> list[Connection]:
    """The open connections."""
    return cast(list[Connection], list(server.connections.snapshot()))
