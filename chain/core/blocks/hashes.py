"""The hash of a block, computed from its header.

A header whose hash is right can't have been changed: its filter, its time and the root of its
receipts are those of the block with this hash. The order of the fields is that of the Yellow Paper
(section 4.4), and those that hard forks have appended follow in the order of their EIPs (1559,
4895, 4844, 4788, 7685, 7928, 7843). Networks of another make hash something else.
"""

from __future__ import annotations

from typing import Any, Final

from eth_utils import keccak

from chain.core.blocks import rlp
from chain.core.blocks.hexadecimal import bytes_of
from chain.core.node import Header

_TEXTS: Final = 1  # bytes as they are
_WHOLE: Final = 2  # a number, without leading zeros
_REQUIRED: Final = (
    ("parent_hash", _TEXTS),
    ("sha3_uncles", _TEXTS),
    ("miner", _TEXTS),
    ("state_root", _TEXTS),
    ("transactions_root", _TEXTS),
    ("receipts_root", _TEXTS),
    ("logs_bloom", _TEXTS),
    ("difficulty", _WHOLE),
    ("number", _WHOLE),
    ("gas_limit", _WHOLE),
    ("gas_used", _WHOLE),
    ("timestamp", _WHOLE),
    ("extra_data", _TEXTS),
    ("mix_hash", _TEXTS),
    ("nonce", _TEXTS),
)
_APPENDED: Final = (
    ("base_fee_per_gas", _WHOLE),
    ("withdrawals_root", _TEXTS),
    ("blob_gas_used", _WHOLE),
    ("excess_blob_gas", _WHOLE),
    ("parent_beacon_block_root", _TEXTS),
    ("requests_hash", _TEXTS),
    ("block_access_list_hash", _TEXTS),
    ("slot_number", _WHOLE),
)


def has_own_hash(header: Header) -> bool:
    """Whether the header's fields hash to the block hash that it states."""
    return hash_of(header) == header.hash.lower()


def hash_of(header: Header) -> str | None:
    """The hash of the block with these fields; None if one of them is missing or malformed."""
    appended = [(name, kind) for name, kind in _APPENDED if getattr(header, name) is not None]
    if appended != [*_APPENDED[: len(appended)]]:
        return None
    try:
        fields = [_field(getattr(header, name), kind) for name, kind in (*_REQUIRED, *appended)]
    except ValueError:
        return None
    return "0x" + keccak(rlp.encode(fields)).hex()


def _field(value: Any, kind: int) -> bytes:
    if kind == _TEXTS:
        return bytes_of(value)
    if not isinstance(value, str) or not value.startswith("0x"):
        raise ValueError("not a hexadecimal text")
    number = int(value, 16)
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
