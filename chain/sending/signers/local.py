"""A signer whose key is in this process."""

from __future__ import annotations

from eth_keys.datatypes import PrivateKey
from eth_keys.exceptions import ValidationError

from chain.core.names import checksummed
from chain.core.transactions.encoding import Unsigned
from chain.sending.signers.problems import CannotSign


class LocalSigner:
    """Signs with a private key of 32 bytes."""

    __slots__ = ("__key", "address")

    def __init__(self, key: bytes) -> None:
        # ``PrivateKey`` shows the key in its text, so none is kept.
        self.__key = key
        try:
            self.address = checksummed(PrivateKey(key).public_key.to_address())
        except (ValidationError, ValueError):
            raise CannotSign("the signer's key is no key of secp256k1") from None

    def __repr__(self) -> str:
        return f"<signer {self.address}>"

    def __reduce__(self) -> str:
        raise TypeError("a signer is not stored")

    def sign(self, transaction: Unsigned) -> bytes:
        parity, r, s = PrivateKey(self.__key).sign_msg_hash(transaction.digest).vrs
        return transaction.signed(r, s, parity)
