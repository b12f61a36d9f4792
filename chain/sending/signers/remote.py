"""A signer behind web3signer's HTTP API (``/api/v1/eth1``).

It is handed the bytes of the transaction, hashes and signs them. It names keys by the public key,
so that is found by the address first.
"""

from __future__ import annotations

import re
import threading
from typing import Any, Final

import msgspec
from eth_keys.datatypes import PublicKey, Signature
from eth_keys.exceptions import BadSignature, ValidationError

from backend.kernel.outgoing import Client, Unreachable
from chain.core.names import checksummed
from chain.core.transactions.encoding import Unsigned
from chain.rpc.client.secret_address import Address
from chain.sending.signers.problems import CannotSign

_PUBLIC_KEY = re.compile(r"0x(?:04)?[0-9a-fA-F]{128}")
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}")
_HALF_ORDER: Final = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_LARGEST: Final = 256 * 1024  # bytes of an answer
_IDLE: Final = 60.0  # seconds that a connection stays open


class RemoteSigner:
    """Signs through another service. ``address`` may be left out where it has one key."""

    def __init__(self, url: str, address: str | None = None, *, timeout: float = 5.0) -> None:
        place = Address(url)
        self._url, self._headers = place.url, place.headers
        self._address = address
        self._identifier: str | None = None
        self._finding = threading.Lock()
        self._timeout = timeout
        self._client = Client(idle=_IDLE, per_origin=8, connect_seconds=min(timeout, 2.0))

    def __repr__(self) -> str:
        return f"<signer {self._address or 'of another service'}>"

    @property
    def address(self) -> str:
        self._find()
        assert self._address is not None
        return self._address

    def sign(self, transaction: Unsigned) -> bytes:
        identifier = self._find()
        body = msgspec.json.encode({"data": f"0x{transaction.payload.hex()}"})
        answer = self._ask("POST", f"/api/v1/eth1/sign/{identifier}", body)
        text = answer.decode("ascii", "replace").strip().strip('"')
        if not _SIGNATURE.fullmatch(text):
            raise CannotSign("the signing service has answered what is no signature")
        raw = bytes.fromhex(text[2:])
        r, s, v = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:64], "big"), raw[64]
        parity = v - 27 if v >= 27 else v
        try:
            by = Signature(vrs=(parity, r, s)).recover_public_key_from_msg_hash(transaction.digest)
        except (BadSignature, ValidationError):
            raise CannotSign("the signing service's signature is none") from None
        if s > _HALF_ORDER or checksummed(by.to_address()) != self._address:
            raise CannotSign("the signing service has signed something else, or by another key")
        return transaction.signed(r, s, parity)

    def _find(self) -> str:
        """What the service calls the key."""
        with self._finding:
            if self._identifier is None:
                self._address, self._identifier = self._chosen(self._known())
            return self._identifier

    def _known(self) -> dict[str, str]:
        """The service's keys by their addresses."""
        try:
            public_keys: Any = msgspec.json.decode(self._ask("GET", "/api/v1/eth1/publicKeys"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            public_keys = None
        if not isinstance(public_keys, list):
            raise CannotSign("the signing service doesn't list its keys")
        keys = [key for key in public_keys if isinstance(key, str) and _PUBLIC_KEY.fullmatch(key)]
        return {_address_of(key): key for key in keys}

    def _chosen(self, keys: dict[str, str]) -> tuple[str, str]:
        if self._address is not None:
            if self._address not in keys:
                raise CannotSign(f"the signing service has no key of {self._address}")
            return self._address, keys[self._address]
        if len(keys) != 1:
            raise CannotSign(
                f"the signing service has {len(keys)} keys: SIGNER_ADDRESS has to name one"
            )
        return next(iter(keys.items()))

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {"Accept": "application/json, text/plain", **self._headers}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._client.request(
                method,
                self._url + path,
                body=body,
                headers=headers,
                seconds=self._timeout,
                most=_LARGEST,
            )
        except Unreachable as error:
            raise CannotSign(f"the signing service can't be used: {error}") from None
        if response.status == 404:
            raise CannotSign("the signing service doesn't have the key")
        if response.status != 200:
            raise CannotSign(f"the signing service has answered with HTTP {response.status}")
        return response.body


def _address_of(public_key: str) -> str:
    raw = bytes.fromhex(public_key[2:])[-64:]
    return checksummed(PublicKey(raw).to_address())
