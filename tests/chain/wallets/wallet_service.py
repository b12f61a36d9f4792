"""A wallet service: its API in the shapes that such services publish, with faults."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import webauthn
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from webauthn.helpers import base64url_to_bytes as unpack
from webauthn.helpers import bytes_to_base64url as pack

TOKEN = "service-account-token"
KEY_ID = "6Ca6tAOFTx2odyJBnCoRO-gPvfpfy0EOoOcEaxfxIOk"


class _Absent:
    """In the place of a value: the answer hasn't got it."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


class WalletService:
    """A running service. ``faults`` are for the next requests: a status, ``"drop"`` (the wallet is
    made and the connection ends), a body as text, or None for none. ``late`` wallets have no
    address in the first answer; ``remembers`` says how a repeated ``externalId`` is answered."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.wallets: dict[str, dict[str, Any]] = {}
        self.by_external_id: dict[str, str] = {}
        self.faults: list[Any] = []
        self.late = False
        self.remembers = "same"  # or conflict
        self.change: dict[str, Any] = {}
        self.key: ec.EllipticCurvePrivateKey | None = None
        self.to_sign: dict[str, dict[str, Any]] = {}
        self.signed: dict[str, dict[str, Any]] = {}
        self.invited: dict[str, dict[str, str]] = {}
        self.most_wallets = 100
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                service._answer(
                    self, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                )

            def do_GET(self) -> None:
                service._answer(self, None)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def settings(self, *networks: str) -> dict[str, Any]:
        return {
            "WALLET_CUSTODIAN": "http",
            "WALLET_API_URL": self.url,
            "WALLET_API_TOKEN": TOKEN,
            "WALLET_NETWORKS": networks or ("BaseSepolia",),
        }

    def wants_signatures(self) -> dict[str, Any]:
        """Take only requests that are signed; the settings for that."""
        self.key = ec.generate_private_key(ec.SECP256R1())
        pem = self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return {"WALLET_API_KEY": pem.decode(), "WALLET_API_KEY_ID": KEY_ID}

    def _answer(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.requests.append((handler.command, handler.path, headers, body))
        fault = self.faults.pop(0) if self.faults else None
        if fault == "drop":
            self._make(body)
            handler.close_connection = True
            return
        if isinstance(fault, str):
            self._send(handler, 200, fault.encode())
        elif isinstance(fault, int):
            self._send(handler, fault, b'{"error": {"message": "no"}}')
        elif handler.path == "/auth/registration/enduser":
            self._complete_registration(handler, headers, body)
        elif headers.get("authorization") != f"Bearer {TOKEN}":
            self._send(handler, 401, b'{"error": {"message": "who?"}}')
        elif handler.path == "/auth/action/init":
            self._ask_for_signature(handler, body)
        elif handler.path == "/auth/action":
            self._take_signature(handler, body)
        elif handler.command == "POST" and not self._is_signed(handler.path, headers, body):
            self._send(handler, 403, b'{"error": {"message": "not signed"}}')
        elif handler.path == "/auth/registration/delegated":
            self._begin_registration(handler, body)
        elif handler.command == "POST" and handler.path == "/wallets":
            self._create(handler, body)
        else:
            response = self.wallets.get(handler.path.rpartition("/")[2])
            status = 404 if response is None else 200
            self._send(handler, status, json.dumps(response or {}).encode())

    def _create(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        existing = self.by_external_id.get(body["externalId"])
        if existing is not None and self.remembers == "conflict":
            error = {"status": 409, "details": {"duplicate": {"id": existing}}}
            self._send(handler, 409, json.dumps({"error": error}).encode())
            return
        wallet = dict(self._make(body))
        if self.late:
            del wallet["address"]
        wallet = {
            name: value for name, value in {**wallet, **self.change}.items() if value is not ABSENT
        }
        self._send(handler, 200, json.dumps(wallet).encode())

    # -- Signatures of requests -------------------------------------------------------------------

    def _ask_for_signature(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        identifier = f"session-{len(self.to_sign)}"
        challenge = pack(os.urandom(32))
        self.to_sign[identifier] = {**body, "challenge": challenge}
        results = {
            "challenge": challenge,
            "challengeIdentifier": identifier,
            "supportedCredentialKinds": [{"kind": "Key", "factor": "first"}],
            "allowCredentials": {"key": [{"type": "public-key", "id": KEY_ID}], "webauthn": []},
        }
        self._send(handler, 200, json.dumps(results).encode())

    def _take_signature(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        challenge = self.to_sign.pop(body["challengeIdentifier"])
        assertion = body["firstFactor"]["credentialAssertion"]
        client_data = unpack(assertion["clientData"])
        self.key.public_key().verify(  # type: ignore[union-attr]
            unpack(assertion["signature"]), client_data, ec.ECDSA(hashes.SHA256())
        )
        document = json.loads(client_data)
        assert (document["type"], document["challenge"]) == ("key.get", challenge["challenge"])
        assert (body["firstFactor"]["kind"], assertion["credId"]) == ("Key", KEY_ID)
        token = f"signed-{os.urandom(8).hex()}"
        self.signed[token] = challenge
        self._send(handler, 200, json.dumps({"userAction": token}).encode())

    def _is_signed(self, path: str, headers: dict[str, str], body: Any) -> bool:
        if self.key is None:
            return True
        challenge = self.signed.pop(headers.get("x-dfns-useraction", ""), None)
        return (
            challenge is not None
            and (challenge["userActionHttpMethod"], challenge["userActionHttpPath"])
            == ("POST", path)
            and json.loads(challenge["userActionPayload"]) == body
        )

    # -- Users of its own -------------------------------------------------------------------------

    def _begin_registration(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        assert body["kind"] == "EndUser"
        token = f"eyJ.{os.urandom(8).hex()}"
        challenge = pack(os.urandom(32).hex().encode())
        self.invited[token] = {"username": body["email"], "challenge": challenge}
        results = {
            "temporaryAuthenticationToken": token,
            "challenge": challenge,
            "rp": {"id": "localhost", "name": "Wallets"},
            "user": {"id": "us-1", "name": body["email"], "displayName": body["email"]},
        }
        results = {
            name: value for name, value in {**results, **self.change}.items() if value != ABSENT
        }
        self._send(handler, 200, json.dumps(results).encode())

    def _complete_registration(
        self, handler: BaseHTTPRequestHandler, headers: dict[str, str], body: dict[str, Any]
    ) -> None:
        token = headers["authorization"].removeprefix("Bearer ")
        invited = self.invited.pop(token, None)
        if invited is None:
            self._send(handler, 401, b'{"error": {"message": "who?"}}')
            return
        info = body["firstFactorCredential"]["credentialInfo"]
        webauthn.verify_registration_response(
            credential={
                "id": info["credId"],
                "rawId": info["credId"],
                "type": "public-key",
                "response": {
                    "clientDataJSON": info["clientData"],
                    "attestationObject": info["attestationData"],
                },
            },
            expected_challenge=unpack(invited["challenge"]),
            expected_rp_id="localhost",
            expected_origin="http://localhost:8000",
        )
        name = invited["username"]
        wallets = [
            self._make({"network": item["network"], "name": name, "externalId": f"{name} {number}"})
            for number, item in enumerate(body["wallets"])
        ]
        results = {
            "credential": {"uuid": "cr-1", "credentialKind": "Fido2", "name": "Default"},
            "user": {"id": "us-1", "username": name, "orgId": "or-1"},
            "authentication": {"token": "eyJ.SECRET"},
            "wallets": [{**item, "custodial": False} for item in wallets][: self.most_wallets],
        }
        self._send(handler, 200, json.dumps(results).encode())

    def _make(self, body: dict[str, Any]) -> dict[str, Any]:
        existing = self.by_external_id.get(body["externalId"])
        if existing is not None:
            return self.wallets[existing]
        number = len(self.wallets) + 1
        wallet_id = f"wa-{number:05x}-aaaaa-{'b' * 16}"
        self.by_external_id[body["externalId"]] = wallet_id
        self.wallets[wallet_id] = {
            "id": wallet_id,
            "network": body["network"],
            "name": body["name"],
            "address": f"0x{number + 0xABCDEF:040x}",
            "status": "Active",
            "signingKey": {"scheme": "ECDSA", "curve": "secp256k1", "publicKey": "02" + "ab" * 32},
            "custodial": True,
        }
        return self.wallets[wallet_id]

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, status: int, content: bytes) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@contextmanager
def running_wallet_service() -> Iterator[WalletService]:
    service = WalletService()
    try:
        yield service
    finally:
        service.stop()
