"""Transactions in the bytes that are signed and sent: EIP-1559, and EIP-155 for older networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from eth_utils import keccak

from chain.core.transactions.fees import Fees

GAS_OF_NOTHING: Final = 21_000
"""Gas of a transaction that moves no data."""

_DYNAMIC_FEES: Final = b"\x02"

_Item: TypeAlias = "int | bytes | Sequence[Any]"


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A transaction without its signature; ``to`` and ``data`` are 0x…, ``value`` is wei."""

    chain_id: int
    nonce: int
    to: str
    value: int
    data: str
    gas: int
    fees: Fees

    def with_fees(self, fees: Fees) -> Unsigned:
        return replace(self, fees=fees)

    @property
    def payload(self) -> bytes:
        """What is hashed and signed."""
        if self.fees.priority_fee is None:
            return encoded([*self._legacy(), self.chain_id, 0, 0])
        return _DYNAMIC_FEES + encoded(self._dynamic())

    @property
    def digest(self) -> bytes:
        return keccak(self.payload)

    def signed(self, r: int, s: int, parity: int) -> bytes:
        """The transaction as it is sent; ``parity`` (0 or 1) is the signature's."""
        if self.fees.priority_fee is None:
            return encoded([*self._legacy(), self.chain_id * 2 + 35 + parity, r, s])
        return _DYNAMIC_FEES + encoded([*self._dynamic(), parity, r, s])

    def _legacy(self) -> list[_Item]:
        to, data = bytes.fromhex(self.to[2:]), bytes.fromhex(self.data[2:])
        return [self.nonce, self.fees.max_fee, self.gas, to, self.value, data]

    def _dynamic(self) -> list[_Item]:
        to, data = bytes.fromhex(self.to[2:]), bytes.fromhex(self.data[2:])
        fees = [self.fees.priority_fee or 0, self.fees.max_fee]
        return [self.chain_id, self.nonce, *fees, self.gas, to, self.value, data, []]


def hash_of_raw(raw: bytes) -> str:
    """The hash that a network knows a sent transaction by."""
    return f"0x{keccak(raw).hex()}"


def encoded(item: _Item) -> bytes:
    """The recursive length prefix encoding (RLP) of numbers, bytes and lists of them."""
    if isinstance(item, int):
        item = item.to_bytes((item.bit_length() + 7) // 8, "big")
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < 0x80:
            return item
        return _prefixed(0x80, item)
    return _prefixed(0xC0, b"".join(encoded(each) for each in item))


def _prefixed(kind: int, body: bytes) -> bytes:
    if len(body) < 56:
        return bytes([kind + len(body)]) + body
    length = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes([kind + 55 + len(length)]) + length + body
