"""The server of a third party: answers webhooks as a test wants, and records them."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """One request: ``headers`` by lower-case name, ``raw`` the body as it came."""

    path: str
    headers: dict[str, str]
    raw: bytes
    connection: tuple[str, int]

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


@dataclass
class Answering:
    """What a path answers: JSON of ``body``, or ``raw``."""

    body: Any = None
    status: int = 200
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


class Receiver:
    """A running server. ``on(path, …)`` says what it answers there."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.news = threading.Condition()
        self._answers: dict[str, Callable[[Received], Answering]] = {}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                item = Received(self.path, headers, raw, self.client_address)
                with receiver.news:
                    receiver.received.append(item)
                    receiver.news.notify_all()
                answer = receiver._answers[self.path](item)
                content = answer.raw
                if content is None:
                    content = json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def speak_tls(self, context: ssl.SSLContext) -> None:
        """Only TLS from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def on(
        self, path: str, body: Any = None, *, status: int = 200, raw: bytes | None = None, **h: str
    ) -> str:
        """Answer this at the path, a function of the request or the body itself; its address."""
        if callable(body):
            self._answers[path] = lambda item: Answering(body(item), status, raw, h)
        else:
            self._answers[path] = lambda item: Answering(body, status, raw, h)
        return self.url + path

    def wait_for(self, count: int, seconds: float = 30) -> list[Received]:
        """The first so many requests, once they are there."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.received) >= count, seconds)
            return self.received[:count]

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
