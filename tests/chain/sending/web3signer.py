"""A signing service in the shapes of web3signer's published API for eth1 keys."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from eth_keys.datatypes import PrivateKey
from eth_utils import keccak


class SigningService:
    """The service; ``url`` is its address. It can be made to fail."""

    def __init__(self, *keys: str) -> None:
        private = [PrivateKey(bytes.fromhex(key)) for key in keys]
        self.keys = {item.public_key.to_hex(): item for item in private}
        self.signed: list[bytes] = []
        self.status = 200
        self.body: bytes | None = None
        self.also = b""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, str, bytes]:
        if self.status != 200 or self.body is not None:
            return self.status, "text/plain", self.body or b"Failed"
        if (method, path) == ("GET", "/api/v1/eth1/publicKeys"):
            return 200, "application/json", json.dumps([*self.keys]).encode()
        head = "/api/v1/eth1/sign/"
        if method == "POST" and path.startswith(head):
            key = self.keys.get(path.removeprefix(head))
            if key is None:
                return 404, "text/plain", b"Public Key not found"
            data = bytes.fromhex(json.loads(body)["data"][2:]) + self.also
            self.signed.append(data)
            parity, r, s = key.sign_msg_hash(keccak(data)).vrs
            raw = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([27 + parity])
            return 200, "text/plain; charset=utf-8", f"0x{raw.hex()}".encode()
        return 404, "text/plain", b""


def _handler(service: SigningService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            status, kind, body = service.answer(self.command, self.path, self.rfile.read(length))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _serve

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    return Handler


@contextmanager
def signing_service(*keys: str) -> Iterator[SigningService]:
    """The service with these private keys."""
    service = SigningService(*keys)
    service.start()
    try:
        yield service
    finally:
        service.stop()
