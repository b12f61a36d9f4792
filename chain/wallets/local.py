"""The built-in custodian: a secp256k1 key for each user and network, encrypted in the database."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

from cryptography.fernet import InvalidToken
from eth_keys.constants import SECPK1_N
from eth_keys.datatypes import PrivateKey

from backend.kernel.encryption import cipher
from chain.models.signing import Wallet
from chain.purposes import WALLET
from chain.wallets.adapters import Custodian, CustodyFailed, Made, Owner, Proof


class Local(Custodian):
    """See the module. The key leaves the database for as long as something is signed."""

    name = "local"

    def create(self, owner: Owner, networks: Sequence[str], proof: Proof | None) -> Iterator[Made]:
        for network in networks:
            # Below the order of the curve, and not 0.
            key = PrivateKey((secrets.randbelow(SECPK1_N - 1) + 1).to_bytes(32, "big"))
            yield Made(
                wallet_id=f"wa-{secrets.token_hex(12)}",
                network=network,
                address=key.public_key.to_checksum_address(),
                key=cipher(WALLET).encrypt(key.to_bytes()).decode(),
            )

    def sign(self, wallet: Wallet, digest: bytes) -> bytes:
        if wallet.key is None:
            raise CustodyFailed("the key of this wallet isn't kept here")
        try:
            key = PrivateKey(cipher(WALLET).decrypt(wallet.key))
            return key.sign_msg_hash(digest).to_bytes()
        except InvalidToken:
            raise CustodyFailed("the key can't be read: SECRET_KEY is another one") from None
