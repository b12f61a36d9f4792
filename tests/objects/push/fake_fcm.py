"""Firebase on this machine: the endpoint for access tokens, and the one for messages."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

EMAIL = "push@example-project.iam.gserviceaccount.com"
PROJECT = "example-project"


def error(status: int, code: str, general: str = "INVALID_ARGUMENT") -> tuple[int, Any]:
    """FCM's answer for a message that it refuses."""
    detail = {
        "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
        "errorCode": code,
    }
    return status, {
        "error": {"code": status, "status": general, "message": "x", "details": [detail]}
    }


@dataclass
class FakeFcm:
    """``answers`` are by registration token."""

    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    received: list[dict[str, Any]] = field(default_factory=list)
    accepted_encodings: set[str] = field(default_factory=set)
    logins: int = 0
    login_answer: tuple[int, Any] | None = None
    valid: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        fake = self
        self._released = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                fake.accepted_encodings.add(self.headers["Accept-Encoding"])
                status, answer = fake.answer(self.path, self.headers, body)
                if answer == "stall":
                    fake._released.wait(60)
                    self.close_connection = True
                    return
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                for name, value in fake.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def account(self) -> str:
        """The JSON of the service account."""
        private = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return json.dumps(
            {
                "type": "service_account",
                "project_id": PROJECT,
                "client_email": EMAIL,
                "private_key": private.decode(),
                "token_uri": f"{self.url}/token",
            }
        )

    def stop(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        if path == "/token":
            return self._log_in(parse_qs(body.decode()))
        if path != f"/v1/projects/{PROJECT}/messages:send":
            return 404, {}
        if headers["Authorization"].removeprefix("Bearer ") not in self.valid:
            return 401, {"error": {"code": 401, "status": "UNAUTHENTICATED"}}
        message = json.loads(body)["message"]
        self.received.append(message)
        return self.answers.get(message["token"], (200, {"name": "projects/x/messages/1"}))

    def _log_in(self, form: dict[str, list[str]]) -> tuple[int, Any]:
        self.logins += 1
        if self.login_answer is not None:
            return self.login_answer
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        claims = jwt.decode(
            form["assertion"][0],
            self.key.public_key(),
            algorithms=["RS256"],
            audience=f"{self.url}/token",
        )
        assert claims["iss"] == EMAIL
        assert claims["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
        token = f"access-{self.logins}"
        self.valid.add(token)
        return 200, {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}
