"""Sign-In with Ethereum: ``authData.wallet = {"message": …, "signature": …}``.

``challenge({"address", "chainId"})`` gives a message to sign. A client may also write its own (with
its own statement, say), as long as nonce, address and chain are those of a challenge. A nonce
counts for five minutes and for one try, right or wrong.

The id is the address with its checksum. A contract wallet's is ``eip155:CHAIN:ADDRESS``: on another
chain, another account may have a contract at the same address.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from eth_utils import is_checksum_address, to_checksum_address

from backend.kernel.errors import IncorrectType
from backend.kernel.json_types import Json
from backend.settings.conf import service_settings
from objects.users.accounts import short_lived
from objects.users.adapters import siwe
from objects.users.adapters.base import Adapter, ProviderIdentity, Unproven, proof_text
from objects.users.adapters.http import allowed
from objects.users.adapters.signatures import (
    message_hash,
    signature_bytes,
    signed_by_contract,
    signed_by_key,
)

LIFETIME = timedelta(minutes=5)
LEEWAY = timedelta(seconds=60)
_LARGEST_CHAIN = 10**18


class Wallet(Adapter):
    """Options: ``domains`` of the apps (else the one of ``PUBLIC_URL``), ``statement``, and
    ``rpcUrls``, a node for each chain id whose contract wallets may sign in.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        self._public = urlsplit(service_settings.PUBLIC_URL)
        self.domains = self.texts("domains") if "domains" in options else (self._public.netloc,)
        self.statement = self.text("statement", "Sign in.")
        rpc_urls = options.get("rpcUrls") or {}
        if not isinstance(rpc_urls, Mapping):
            raise self.misconfigured("rpcUrls must be an object of chain ids.")
        self.rpc_urls = {str(chain): url for chain, url in rpc_urls.items()}
        for chain, url in self.rpc_urls.items():
            if not chain.isdecimal() or not isinstance(url, str) or not allowed(url):
                raise self.misconfigured("rpcUrls must give an https address for each chain id.")
        for domain in self.domains:
            self._try(self._message(domain, "0x" + "0" * 40, 1, "00000000"))

    def _try(self, message: siwe.Message) -> None:
        try:
            read = siwe.read(message.text())
        except ValueError:
            read = None
        if read is None or (read.domain, read.statement) != (message.domain, message.statement):
            raise self.misconfigured("domains or statement can't stand in a message.")

    def challenge(self, data: Mapping[str, Json]) -> dict[str, Json]:
        address, chain = _address(data.get("address")), _chain(data.get("chainId", 1))
        domain = data.get("domain", self.domains[0])
        if not isinstance(domain, str) or domain not in self.domains:
            raise IncorrectType("challengeData.wallet.domain is not one of this service.")
        message = self._message(domain, address, chain, secrets.token_hex(16))
        _keep(message)
        return {"message": message.text(), "nonce": message.nonce}

    def verify(self, data: Mapping[str, Json]) -> ProviderIdentity:
        text = proof_text(data, "message", longest=siwe.LONGEST)
        signature = signature_bytes(proof_text(data, "signature"))
        try:
            message = siwe.read(text)
        except ValueError as error:
            raise Unproven(str(error)) from None
        self._check(message)
        _use(message)
        signed = message_hash(text)
        if signed_by_key(message.address, signed, signature):
            identity = message.address
        elif self._contract_signed(message, signed, signature):
            identity = f"eip155:{message.chain_id}:{message.address}"
        else:
            raise Unproven("the signature is not the account's")
        return ProviderIdentity(
            identity, {"id": identity, "address": message.address, "chainId": message.chain_id}
        )

    def accepts_id(self, claimed: str, identity: ProviderIdentity) -> bool:
        return claimed.lower() in (identity.id.lower(), identity.id.rpartition(":")[2].lower())

    def _message(self, domain: str, address: str, chain: int, nonce: str) -> siwe.Message:
        now = datetime.now(UTC)
        return siwe.Message(
            domain=domain,
            address=address,
            uri=f"{self._public.scheme}://{domain}",
            chain_id=chain,
            nonce=nonce,
            issued_at=now,
            expires_at=now + LIFETIME,
            statement=self.statement,
        )

    def _check(self, message: siwe.Message) -> None:
        if message.domain not in self.domains:
            raise Unproven("the message is for another domain")
        try:
            uri = urlsplit(message.uri)
        except ValueError:
            raise Unproven("the message is for no address") from None
        if uri.scheme not in ("https", "http") or uri.netloc != message.domain:
            raise Unproven("the message is for another address")
        if message.scheme not in (None, uri.scheme):
            raise Unproven("the message is for another scheme")
        now = datetime.now(UTC)
        if not now - LIFETIME - LEEWAY <= message.issued_at <= now + LEEWAY:
            raise Unproven("the message is of another time")
        if message.expires_at is not None and message.expires_at <= now:
            raise Unproven("the message has expired")
        if message.not_before is not None and message.not_before > now + LEEWAY:
            raise Unproven("the message doesn't count yet")

    def _contract_signed(self, message: siwe.Message, signed: bytes, signature: bytes) -> bool:
        url = self.rpc_urls.get(str(message.chain_id))
        return url is not None and signed_by_contract(url, message.address, signed, signature)


def _address(value: Json) -> str:
    if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{40}", value):
        digits = value[2:]
        if is_checksum_address(value) or digits in (digits.lower(), digits.upper()):
            return str(to_checksum_address(value.lower()))
    raise IncorrectType("challengeData.wallet.address must be an address with a right checksum.")


def _chain(value: Json) -> int:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LARGEST_CHAIN:
        raise IncorrectType("challengeData.wallet.chainId must be the id of a chain.")
    return value


def _keep(message: siwe.Message) -> None:
    proof = json.dumps([message.address, message.chain_id])
    short_lived.keep(_name(message.nonce), proof, LIFETIME)


def _use(message: siwe.Message) -> None:
    proof = short_lived.take(_name(message.nonce))
    if proof is None:
        raise Unproven("the nonce is unknown, used or too old")
    if json.loads(proof) != [message.address, message.chain_id]:
        raise Unproven("the nonce was given to another account")


def _name(nonce: str) -> str:
    return f"wallet:{nonce}"
