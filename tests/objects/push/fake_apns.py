"""Apple's service on this machine: HTTP/2 with TLS, verified tokens, answers of a test."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded

TEAM, KEY_ID, TOPIC = "TEAM123456", "KEY1234567", "org.example.app"


@dataclass
class Received:
    """A request: the device token, the headers without the authorization, and the JSON."""

    token: str
    headers: dict[str, str]
    json: Any


Answer = tuple[int, Any]
STALL: Answer = (0, "stall")
GARBAGE: Answer = (0, "garbage")
HANG_UP: Answer = (0, "hang up")


@dataclass
class FakeApns:
    """``answers`` are by device token; ``on_request`` may give another one."""

    folder: Path
    answers: dict[str, Answer] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    provider_tokens: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    on_request: Callable[[Received], Answer | None] | None = None

    def __post_init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.key_text = self.key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ).decode()
        self.certificate = self.folder / "certificate.pem"
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=self._tls())
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _tls(self) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
                critical=False,
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        key_file = self.folder / "key.pem"
        key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key_file)
        context.set_alpn_protocols(["h2"])
        return context

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        requests: dict[int, dict[str, str]] = {}
        bodies: dict[int, bytearray] = {}
        while data := await reader.read(65_536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    assert event.stream_id is not None
                    requests[event.stream_id] = {
                        name.decode(): value.decode() for name, value in event.headers
                    }
                    bodies[event.stream_id] = bytearray()
                elif isinstance(event, DataReceived):
                    bodies[event.stream_id] += event.data
                    connection.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id
                    )
                elif isinstance(event, StreamEnded):
                    stream = event.stream_id
                    answer = self._answer(requests[stream], bytes(bodies[stream]))
                    if answer == HANG_UP:
                        writer.close()
                        return
                    if answer == GARBAGE:
                        writer.write(b"\x00\xff\xffgarbage" * 100)
                        continue
                    if answer != STALL:
                        self._send(connection, stream, answer)
            writer.write(connection.data_to_send())
            await writer.drain()

    def _send(self, connection: H2Connection, stream: int, answer: Answer) -> None:
        status, body = answer
        content = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
        connection.send_headers(
            stream, [(":status", str(status)), *self.headers.items()], end_stream=not content
        )
        if content:
            connection.send_data(stream, content, end_stream=True)

    def _answer(self, headers: dict[str, str], body: bytes) -> Answer:
        assert headers[":method"] == "POST"
        prefix, _, token = headers[":path"].rpartition("/")
        if prefix != "/3/device":
            return 404, {"reason": "BadPath"}
        refusal = self._refusal(headers)
        if refusal is not None:
            return refusal
        own = {name: value for name, value in headers.items() if name.startswith("apns-")}
        if own.get("apns-topic", "").partition(".voip")[0] != TOPIC:
            return 400, {"reason": "TopicDisallowed"}
        received = Received(token, own, json.loads(body))
        self.received.append(received)
        if self.on_request is not None:
            answer = self.on_request(received)
            if answer is not None:
                return answer
        return self.answers.get(token, (200, None))

    def _refusal(self, headers: dict[str, str]) -> Answer | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind != "bearer":
            return 403, {"reason": "MissingProviderToken"}
        self.provider_tokens.append(token)
        try:
            claims = jwt.decode(token, self.key.public_key(), algorithms=["ES256"])
        except jwt.InvalidTokenError:
            return 403, {"reason": "InvalidProviderToken"}
        if claims["iss"] != TEAM or jwt.get_unverified_header(token)["kid"] != KEY_ID:
            return 403, {"reason": "InvalidProviderToken"}
        if not -60 < time() - claims["iat"] < 3600:
            return 403, {"reason": "ExpiredProviderToken"}
        return None
