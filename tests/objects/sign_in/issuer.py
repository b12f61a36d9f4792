"""A real issuer of identity tokens: discovery and keys over HTTP, tokens signed with them.

It also plays other providers: ``answers`` says what is answered at a path.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/keys"


@cache
def rsa_key(number: int, bits: int = 2048) -> rsa.RSAPrivateKey:
    """The same key for the same number: making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def public_jwk(key: Any, key_id: str | None = None, **more: Any) -> dict[str, Any]:
    algorithm = (
        jwt.algorithms.RSAAlgorithm
        if isinstance(key, rsa.RSAPrivateKey)
        else jwt.algorithms.ECAlgorithm
    )
    described = algorithm.to_jwk(key.public_key(), as_dict=True)
    described.pop("key_ops", None)
    return {**described, **({"kid": key_id} if key_id else {}), "use": "sig", **more}


@dataclass(frozen=True)
class Asked:
    """A request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Said:
    """An answer: a JSON value, or bytes."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class Issuer:
    """``url`` is the issuer; ``keys`` are its private keys by id."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.keys: dict[str, Any] = {"first": rsa_key(1)}
        self.asked: list[Asked] = []
        self.answers: dict[str, Said | Callable[[Asked], Said]] = {
            CONFIGURATION: lambda _: Said(
                body={"issuer": self.url, "jwks_uri": f"{self.url}{KEYS}"}
            ),
            KEYS: lambda _: Said(
                body={"keys": [public_jwk(key, name) for name, key in self.keys.items()]}
            ),
        }

    def __enter__(self) -> Issuer:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # a client that hangs up is no news
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self.url = f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening at its address."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def times_asked(self, path: str) -> int:
        return sum(request.path.partition("?")[0] == path for request in self.asked)

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Those of a right token. A claim that is changed to ``None`` is left out."""
        now = int(time.time())
        message = {"iss": self.url, "aud": "our-app", "sub": "alice", "iat": now, "exp": now + 600}
        return {name: value for name, value in {**message, **changes}.items() if value is not None}

    def token(
        self,
        *,
        key: Any = None,
        key_id: str | None = "first",
        algorithm: str = "RS256",
        header: dict[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        headers = {**({"kid": key_id} if key_id else {}), **(header or {})}
        signer = self.keys[key_id or "first"] if key is None else key
        return jwt.encode(self.claims(**changes), signer, algorithm, headers)


def _handler(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            request = Asked(self.command, self.path, dict(self.headers), self.rfile.read(length))
            issuer.asked.append(request)
            response = issuer.answers.get(self.path.partition("?")[0], Said(404, {}))
            response = response(request) if callable(response) else response
            body = (
                response.body
                if isinstance(response.body, bytes)
                else json.dumps(response.body).encode()
            )
            self.send_response(response.status)
            for name, value in {"Content-Length": str(len(body)), **response.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer

        def log_message(self, *_: object) -> None:
            """Not on the screen."""

    return Handler
