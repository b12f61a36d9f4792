"""A server that speaks as much of S3 as the service uses, and fails as a test wants."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


@dataclass
class FakeS3:
    """``objects`` by path. ``fault`` answers in place of the server; None is a sound one."""

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    fault: Callable[[Handler], None] | None = None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    s3: FakeS3

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self._is_sound():
            self.s3.objects[self.path] = body
            self.answer(200, b"")

    def do_GET(self) -> None:
        if not self._is_sound():
            return
        content = self.s3.objects.get(self.path)
        if content is None:
            self.error(404, "NoSuchKey")
            return
        match = _RANGE.fullmatch(self.headers.get("Range", ""))
        if match is None:
            self.answer(200, content)
        elif int(match[1]) >= len(content):
            self.error(416, "InvalidRange")
        else:
            start, end = int(match[1]), min(int(match[2]) + 1, len(content))
            place = f"bytes {start}-{end - 1}/{len(content)}"
            self.answer(206, content[start:end], Content_Range=place)

    def do_DELETE(self) -> None:
        if self._is_sound():
            self.s3.objects.pop(self.path, None)
            self.answer(204, b"")

    def _is_sound(self) -> bool:
        if self.s3.fault is not None:
            self.s3.fault(self)
        return self.s3.fault is None

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("ETag", '"0"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def error(self, status: int, code: str) -> None:
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>m</Message></Error>"
        self.answer(status, text.encode(), Content_Type="application/xml")

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def fake_s3() -> Iterator[FakeS3]:
    s3 = FakeS3()
    handler = type("BoundHandler", (Handler,), {"s3": s3})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    s3.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield s3
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
