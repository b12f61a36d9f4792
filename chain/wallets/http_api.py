"""Asking the API of a wallet service.

Each request has the token as ``Authorization: Bearer``, and where the service wants it a signature
of its own (``X-DFNS-USERACTION``): a challenge for exactly this request is asked for, signed with
the key of the service account, and exchanged for a token that counts once.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from webauthn.helpers import bytes_to_base64url

from backend.kernel.outgoing import Unreachable
from backend.settings.conf import service_settings
from chain.core.names import address_of
from chain.wallets.adapters import CustodyFailed, Made
from objects.users.adapters.http import Answer, fetch
from objects.users.passkeys import relying_party

ATTEMPTS: Final = 3
PATIENCE: Final = 15.0  # seconds; nothing new is asked after that
_PAUSE = 0.2  # seconds, doubled with each attempt
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}").fullmatch
_ADDRESS = re.compile(r"[A-Za-z0-9_.:-]{8,128}").fullmatch
_TOKEN = re.compile(r"[!-~]{1,8192}").fullmatch
_TRY_AGAIN = (408, 425, 429)

Body = Mapping[str, Any]


class WalletApi:
    """The requests for one thing to be done, with an end to their time."""

    def __init__(self) -> None:
        self._until = time.monotonic() + PATIENCE

    def get(self, path: str) -> Body:
        return self._ask(path, None, {}, False)

    def post(
        self,
        path: str,
        body: Body,
        headers: Mapping[str, str] | None = None,
        *,
        is_signed: bool = True,
    ) -> Body:
        """The answer to a request that may be sent again as it is. Raises ``CustodyFailed``."""
        return self._ask(path, body, headers or {}, is_signed)

    def wallet(self, body: Any, network: str) -> Made:
        """The wallet that the service describes. A missing address is requested."""
        wallet = body if isinstance(body, dict) else {}
        wallet_id = _text(wallet, "id", _ID, "the answer is no wallet")
        for attempt in range(ATTEMPTS):
            if wallet.get("address"):
                break
            self._pause(attempt)
            wallet = dict(self.get(f"/wallets/{wallet_id}"))
        address = _text(wallet, "address", _ADDRESS, "the wallet has no address")
        if wallet.get("network", network) != network:
            raise CustodyFailed("the wallet is of another network")
        if address.lower().startswith("0x"):
            try:
                address = address_of(address)
            except ValueError:
                raise CustodyFailed("the wallet's address isn't one") from None
        return Made(wallet_id, network, address, reference=wallet_id)

    def _ask(self, path: str, body: Body | None, headers: Mapping[str, str], signed: bool) -> Body:
        url = f"{service_settings.WALLET_API_URL}{path}"
        sent = {"Authorization": f"Bearer {service_settings.WALLET_API_TOKEN}", **headers}
        for attempt in range(ATTEMPTS):
            if signed and body is not None and service_settings.WALLET_API_KEY:
                # Each time: the token of a signature is valid once.
                sent["X-DFNS-USERACTION"] = self._signature(path, body)
            try:
                answer = fetch(url, body=body, headers=sent)
                if answer.status < 500 and answer.status not in _TRY_AGAIN:
                    return self._content(answer)
                problem = f"status {answer.status}"
            except Unreachable as error:
                problem = str(error)
            if attempt == ATTEMPTS - 1:
                raise CustodyFailed(problem)
            self._pause(attempt)
        raise AssertionError("unreachable")

    def _content(self, answer: Answer) -> Body:
        try:
            content = answer.json()
        except Unreachable as error:
            raise CustodyFailed(f"status {answer.status}, {error}") from None
        if answer.status == 409:
            duplicate = _at(content, "error", "details", "duplicate", "id")
            if isinstance(duplicate, str) and _ID(duplicate):
                return self.get(f"/wallets/{duplicate}")
        if answer.status not in (200, 201):
            raise CustodyFailed(f"status {answer.status}")
        return content

    def _pause(self, attempt: int) -> None:
        pause = _PAUSE * 2**attempt
        if time.monotonic() + pause > self._until:
            raise CustodyFailed("it takes too long")
        time.sleep(pause)

    def _signature(self, path: str, body: Body) -> str:
        action = {
            # As the request itself will have it.
            "userActionPayload": json.dumps(body),
            "userActionHttpMethod": "POST",
            "userActionHttpPath": path,
            "userActionServerKind": "Api",
        }
        response = self.post("/auth/action/init", action, is_signed=False)
        identifier = _text(response, "challengeIdentifier", _TOKEN, "there is no challenge to sign")
        client_data = json.dumps(
            {
                "type": "key.get",
                "challenge": _text(response, "challenge", _TOKEN, "there is no challenge to sign"),
                "origin": relying_party.origins()[0],
                "crossOrigin": False,
            }
        ).encode()
        assertion = {
            "credId": service_settings.WALLET_API_KEY_ID,
            "clientData": bytes_to_base64url(client_data),
            "signature": bytes_to_base64url(_signed(client_data)),
        }
        factor = {"kind": "Key", "credentialAssertion": assertion}
        signature = {"challengeIdentifier": identifier, "firstFactor": factor}
        done = self.post("/auth/action", signature, is_signed=False)
        return _text(done, "userAction", _TOKEN, "the signature wasn't taken")


def _signed(data: bytes) -> bytes:
    key = load_pem_private_key(service_settings.WALLET_API_KEY.encode(), None)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(data, ec.ECDSA(hashes.SHA256()))
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(data)
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    raise CustodyFailed("the key of the service account is of a kind that doesn't sign")


def _text(body: Body, name: str, fits: Any, complaint: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not fits(value):
        raise CustodyFailed(complaint)
    return value


def _at(value: Any, *steps: str) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value
