"""Accounts of a chain that sign in with their wallets."""

from __future__ import annotations

from typing import Any

import pytest
from eth_keys.datatypes import PrivateKey

from backend.kernel.errors import ObjectNotFound
from objects.users import adapters
from objects.users.adapters import ProviderIdentity
from objects.users.adapters.signatures import message_hash


class Account:
    """A key and its address. (eth-account would raise the recursion limit of the process.)"""

    def __init__(self, key: bytes) -> None:
        self._key = PrivateKey(key)
        self.address: str = self._key.public_key.to_checksum_address()

    def sign(self, text: str) -> str:
        signature = self._key.sign_msg_hash(message_hash(text)).to_bytes()
        return "0x" + (signature[:64] + bytes([27 + signature[64]])).hex()


ALICE = Account(b"\xa1" * 32)
BOB = Account(b"\xb0" * 32)


def challenge(address: str = ALICE.address, chain_id: Any = 1, **more: Any) -> dict[str, Any]:
    return adapters.challenge("wallet", {"address": address, "chainId": chain_id, **more})


def sign(text: str, account: Account = ALICE) -> str:
    return account.sign(text)


def verify(message: str, signature: str | None = None, **more: Any) -> ProviderIdentity:
    return adapters.verify(
        "wallet", {"message": message, "signature": signature or sign(message), **more}
    )


def refused(message: str, signature: str | None = None, **more: Any) -> bool:
    with pytest.raises(ObjectNotFound) as caught:
        verify(message, signature, **more)
    assert caught.value.message == "wallet auth is invalid for this user."
    return True
