"""Proofs with which a stranger signs in: wallet messages, signatures and passkeys."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from objects.users.adapters import siwe
from objects.users.adapters.base import Unproven
from objects.users.adapters.signatures import message_hash, signature_bytes, signed_by_key
from objects.users.passkeys import ceremonies
from objects.users.passkeys.ceremonies import Unverified
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.targets import (
    EXAMPLES,
    accepts,
    check_nothing_long_is_remembered,
    check_work_is_proportional,
    fuzz,
)

ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
MESSAGE = f"""example.org wants you to sign in with your Ethereum account:
{ADDRESS}

Sign in.

URI: https://example.org/login
Version: 1
Chain ID: 1
Nonce: abcdefgh12345678
Issued At: 2026-01-31T12:00:00Z"""
MESSAGES = [
    MESSAGE,
    MESSAGE.replace("Sign in.\n", ""),
    f"https://{MESSAGE}\nExpiration Time: 2026-01-31T13:00:00.123Z",
    f"{MESSAGE}\nRequest ID: a\nResources:\n- https://example.org/a\n- ipfs://b",
]
SIGNATURES = ["0x" + "1b" * 65, "0x" + "00" * 64 + "1c", "0xabcd"]


def _coded(data: Any) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


CLIENT_DATA = {"type": "webauthn.create", "challenge": _coded(b"c" * 32), "origin": "http://a"}
# A map of fmt, attStmt and authData in CBOR, with a key of 77 bytes at its end.
ATTESTATION = (
    b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58\x94"
    + bytes(32) + b"\x45" + bytes(4) + bytes(16) + b"\x00\x10" + bytes(16)
    + bytes.fromhex("a5010203262001215820") + bytes(32) + bytes.fromhex("225820") + bytes(32)
)  # fmt: skip
ID = _coded(bytes(16))
NEW = {
    "id": ID,
    "rawId": ID,
    "type": "public-key",
    "response": {
        "clientDataJSON": _coded(CLIENT_DATA),
        "attestationObject": _coded(ATTESTATION),
        "transports": ["usb"],
    },
}
PROOF = {
    "id": ID,
    "rawId": ID,
    "type": "public-key",
    "response": {
        "clientDataJSON": _coded({**CLIENT_DATA, "type": "webauthn.get"}),
        "authenticatorData": _coded(bytes(32) + b"\x05" + bytes(4)),
        "signature": _coded(bytes(70)),
        "userHandle": _coded(b"aaaaaaaaaa"),
    },
}
PASSKEYS: list[dict[str, Any]] = [NEW, PROOF]


def read_message(value: tuple[str, str]) -> None:
    """Read a message and a signature. A message that was read is written as it was."""
    text, signature = value
    message = siwe.read(text)
    assert message.address in text
    assert siwe.read(message.text()).nonce == message.nonce
    signed_by_key(message.address, message_hash(text), signature_bytes(signature))


def read_passkey(value: Any) -> None:
    """Read and verify a passkey, new or used."""
    if not isinstance(value, dict):
        return
    response = value.get("response")
    if isinstance(response, dict) and "attestationObject" in response:
        ceremonies.verify_attestation(ceremonies.read_attestation(value), b"c" * 32)
    credential = ceremonies.read_assertion(value)
    ceremonies.user_handle(credential)
    ceremonies.verify_assertion(credential, b"c" * 32, ATTESTATION[-77:])


def make_passkey(mutator: Mutator) -> Any:
    samples = mutator.sample()
    response = dict(samples["response"])
    name = mutator.pick(list(response))
    if isinstance(response[name], str) and mutator.below(3):
        raw = base64.urlsafe_b64decode(response[name] + "==")
        response[name] = _coded(mutator.data(raw))
    samples = {**samples, "response": response}
    return samples if mutator.below(2) else mutator.json(samples)


def test_the_examples_are_valid():
    accepts(siwe.read, MESSAGES)
    accepts(ceremonies.read_attestation, [NEW])
    accepts(ceremonies.read_assertion, [PROOF])


@EXAMPLES
def test_any_wallet_message_is_read_or_refused(examples):
    def make(mutator: Mutator) -> tuple[str, str]:
        signature = mutator.pick(SIGNATURES)
        text = mutator.pick(MESSAGES)
        return (mutator.text(text) if mutator.below(10) else text), (
            signature if mutator.below(2) else mutator.text(signature)
        )

    fuzz(read_message, make, MESSAGES, examples, ValueError, Unproven)


@EXAMPLES
def test_any_passkey_is_read_or_refused(examples):
    fuzz(read_passkey, make_passkey, PASSKEYS, examples, Unverified)


@pytest.mark.parametrize("line", ["Resources:", "\n- a:b", "a", " ", ":", "//"])
def test_work_is_proportional_to_size(line):
    check_work_is_proportional(
        lambda text: read_message((text, SIGNATURES[0])),
        lambda size: MESSAGES[3] + line * size,
        (20, 80, 320, 1_280),
        ValueError,
        Unproven,
    )


def test_nothing_long_is_remembered():
    check_nothing_long_is_remembered(lambda text: read_message((text, "")), str, ValueError)
    for name in ("clientDataJSON", "attestationObject"):
        check_nothing_long_is_remembered(
            read_passkey,
            lambda text, name=name: {**NEW, "response": {**NEW["response"], name: text}},
            Unverified,
        )
