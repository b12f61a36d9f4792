"""Hexadecimal texts of a node's answers in one spelling: in lower case.

JSON-RPC leaves open whether hashes, addresses, topics, data and quantities are in lower case, and
nodes differ. Everything behind this compares and looks up such texts as they are.
"""

from __future__ import annotations

import re
from typing import Final

_UPPER_CASE: Final = tuple(bytes([letter]) for letter in b"ABCDEFX")
_OTHERWISE: Final = re.compile(rb'"0(?:X|x[0-9a-f]*+[A-F])')
# A quote behind a backslash is part of another text.
_HEXADECIMAL: Final = re.compile(rb'(?<!\\)"0[xX][0-9a-fA-F]*+"')


def in_lower_case(body: bytes) -> bytes:
    """Return a JSON document with all strings that are ``0x`` and hexadecimal digits in lower case;
    the document itself if they are already."""
    # The letters first: logs of most nodes have none of these anywhere, and searching for strings
    # takes twice as long as decoding them.
    if not any(letter in body for letter in _UPPER_CASE) or _OTHERWISE.search(body) is None:
        return body
    spelled = bytearray(body)
    for text in _HEXADECIMAL.finditer(body):
        spelled[text.start() : text.end()] = text[0].lower()
    return bytes(spelled)
