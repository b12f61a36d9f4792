"""Bytes as nodes write them."""

from __future__ import annotations

import re
from typing import Final

_BYTES: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


def bytes_of(text: object) -> bytes:
    """The bytes of a text such as ``0x00ff``; ``ValueError`` for anything else.

    ``bytes.fromhex`` alone would skip spaces: a text could have the right hash and be read
    differently elsewhere.
    """
    if not isinstance(text, str) or _BYTES.fullmatch(text) is None:
        raise ValueError("not a hexadecimal text")
    return bytes.fromhex(text[2:])
