"""Bytes as nodes write them."""

from __future__ import annotations


def bytes_of(text: object) -> bytes:
    """The bytes of a text such as ``0x00ff``; ``ValueError`` for anything else.

    ``bytes.fromhex`` alone would skip spaces: a text could have the right hash and be read
    differently elsewhere.
    """
    if isinstance(text, str) and text.startswith("0x"):
        value = bytes.fromhex(text[2:])
        if 2 * len(value) == len(text) - 2:
            return value
    raise ValueError("not a hexadecimal text")
