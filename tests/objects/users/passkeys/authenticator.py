"""An authenticator in software: keys, counters and flags as a test wants them."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from webauthn.helpers import base64url_to_bytes as unpack
from webauthn.helpers import bytes_to_base64url as pack

UP, UV, BE, BS, AT = 0x01, 0x04, 0x08, 0x10, 0x40
ES256, EDDSA, RS256 = -7, -8, -257


def _new_key(algorithm: int) -> Any:
    if algorithm == ES256:
        return ec.generate_private_key(ec.SECP256R1())
    if algorithm == EDDSA:
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65537, 2048)


@dataclass
class Authenticator:
    """One passkey. ``counts`` is how far the counter goes with each use: 0 for those that don't
    count. Attributes whose names begin with ``says_`` replace what would be true."""

    algorithm: int = ES256
    origin: str = "http://localhost:8000"
    flags: int = UP | UV
    counts: int = 1
    attests: str = "none"  # or packed, by its own key
    credential_id: bytes = field(default_factory=lambda: os.urandom(32))
    counter: int = 0
    user_id: bytes = b""
    says_rp: str | None = None
    says_challenge: str | None = None
    says_type: str | None = None
    in_frame: bool = False

    def __post_init__(self) -> None:
        self.key = _new_key(self.algorithm)

    @property
    def id(self) -> str:
        return pack(self.credential_id)

    # -- What browsers hand on --------------------------------------------------------------------

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """A RegistrationResponseJSON."""
        assert {"type": "public-key", "alg": self.algorithm} in options["pubKeyCredParams"]
        self.user_id = unpack(options["user"]["id"])
        client_data = self._client_data("webauthn.create", options["challenge"])
        attested = b"".join(
            (
                bytes(16),
                len(self.credential_id).to_bytes(2, "big"),
                self.credential_id,
                cbor2.dumps(self._public_key()),
            )
        )
        data = self._data(options["rp"]["id"], AT, attested)
        statement: dict[str, Any] = {}
        if self.attests == "packed":
            signed = data + hashlib.sha256(client_data).digest()
            statement = {"alg": self.algorithm, "sig": self._sign(signed)}
        attestation = {"fmt": self.attests, "attStmt": statement, "authData": data}
        return self._answer(
            clientDataJSON=pack(client_data),
            attestationObject=pack(cbor2.dumps(attestation)),
            transports=["internal", "hybrid"],
        )

    def get(self, options: dict[str, Any]) -> dict[str, Any]:
        """An AuthenticationResponseJSON."""
        client_data = self._client_data("webauthn.get", options["challenge"])
        data = self._data(options["rpId"])
        signature = self._sign(data + hashlib.sha256(client_data).digest())
        return self._answer(
            clientDataJSON=pack(client_data),
            authenticatorData=pack(data),
            signature=pack(signature),
            userHandle=pack(self.user_id),
        )

    # -- Parts ------------------------------------------------------------------------------------

    def _answer(self, **response: Any) -> dict[str, Any]:
        return {
            "id": self.id,
            "rawId": self.id,
            "type": "public-key",
            "response": response,
            "clientExtensionResults": {},
            "authenticatorAttachment": "platform",
        }

    def _client_data(self, type_: str, challenge: str) -> bytes:
        results = {
            "type": self.says_type or type_,
            "challenge": self.says_challenge or challenge,
            "origin": self.origin,
            "crossOrigin": self.in_frame,
        }
        return json.dumps(results).encode()

    def _data(self, rp_id: str, more: int = 0, attested: bytes = b"") -> bytes:
        self.counter += self.counts
        rp_hash = hashlib.sha256((self.says_rp or rp_id).encode()).digest()
        return rp_hash + bytes([self.flags | more]) + self.counter.to_bytes(4, "big") + attested

    def _public_key(self) -> dict[int, Any]:
        public = self.key.public_key()
        if self.algorithm == ES256:
            numbers = public.public_numbers()
            x, y = (item.to_bytes(32, "big") for item in (numbers.x, numbers.y))
            return {1: 2, 3: ES256, -1: 1, -2: x, -3: y}
        if self.algorithm == EDDSA:
            return {1: 1, 3: EDDSA, -1: 6, -2: public.public_bytes_raw()}
        numbers = public.public_numbers()
        return {1: 3, 3: RS256, -1: numbers.n.to_bytes(256, "big"), -2: b"\x01\x00\x01"}

    def _sign(self, data: bytes) -> bytes:
        if self.algorithm == ES256:
            return bytes(self.key.sign(data, ec.ECDSA(hashes.SHA256())))
        if self.algorithm == EDDSA:
            return bytes(self.key.sign(data))
        return bytes(self.key.sign(data, padding.PKCS1v15(), hashes.SHA256()))


def as_wallet_service(created: dict[str, Any]) -> dict[str, Any]:
    """A RegistrationResponseJSON in the form of wallet services."""
    return {
        "firstFactorCredential": {
            "credentialKind": "Fido2",
            "credentialInfo": {
                "credId": created["id"],
                "clientData": created["response"]["clientDataJSON"],
                "attestationData": created["response"]["attestationObject"],
            },
        }
    }
