"""An HTTP server whose answers a test writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Answer: TypeAlias = "tuple[int, bytes] | tuple[int, bytes, Mapping[str, str]]"
"""A status, a body and further headers; status 0 closes the connection."""


class FakeServer:
    """A server that gives these answers, one after the other, and then the last one again."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.paths: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fake.paths.append(self.path)
                answer = fake.answers.pop(0) if len(fake.answers) > 1 else fake.answers[0]
                status, body = answer[:2]
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                length = {"Content-Length": str(len(body))}
                headers = length if len(answer) == 2 else length | dict(answer[2])
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.close_connection = headers["Content-Length"] != str(len(body))
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/parse"


@contextmanager
def running() -> Iterator[FakeServer]:
    """Serve until the block ends."""
    fake = FakeServer()
    thread = threading.Thread(target=fake.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.server.shutdown()
        fake.server.server_close()
        thread.join()
