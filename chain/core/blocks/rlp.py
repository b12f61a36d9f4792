"""Recursive Length Prefix, the encoding that hashes of blocks and receipts are computed from.

Yellow Paper, appendix B. The library of this name looks up a serializer for each value; this is a
seventh of its time, and is run for every header and every receipt that is verified.
"""

from __future__ import annotations

from collections.abc import Sequence

Value = bytes | Sequence["Value"]
"""A text of bytes, or a list of values."""


def encode(value: Value) -> bytes:
    """Return the encoding of bytes or of a list."""
    if isinstance(value, bytes):
        if len(value) == 1 and value[0] < 0x80:
            return value
        return _prefix(0x80, len(value)) + value
    payload = b"".join(map(encode, value))
    return _prefix(0xC0, len(payload)) + payload


def _prefix(offset: int, length: int) -> bytes:
    if length < 56:
        return bytes((offset + length,))
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((offset + 55 + len(size),)) + size
