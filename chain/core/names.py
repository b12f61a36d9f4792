"""Addresses, hashes and networks in the form in which they are kept.

Each function raises ``ValueError`` with a sentence for the sender of the value; the sentence begins
with what was expected, so callers put the parameter's name before it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from eth_utils import keccak

LARGEST_NUMBER: Final = 2**53 - 1  # the largest whole number of JavaScript clients
ZERO_ADDRESS: Final = "0x0000000000000000000000000000000000000000"

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
# Bits of the forty characters: what only letters have, what only 8 and 9 have of the figures.
_LETTERS = int.from_bytes(b"\x40" * 40, "big")
_EIGHTS = int.from_bytes(b"\x08" * 40, "big")
LONGEST_PROVIDER_NAME: Final = 64
_NOT_IN_PATHS: Final = frozenset("/\\%?#")
_DIGITS = re.compile(r"[1-9][0-9]{0,15}")


@lru_cache(maxsize=65_536)
def checksummed(address: str) -> str:
    """The spelling of EIP-55, for an address in lower case that is known to be one."""
    # A digit is a capital if it's a letter and the same digit of the hash is at least 8. All forty
    # at once: a history is full of new addresses, and eth_utils takes three times as long.
    text = address[2:].encode()
    digits = int.from_bytes(text, "big")
    hashed = int.from_bytes(keccak(text)[:20].hex().encode(), "big")
    from_eight_on = (hashed & _LETTERS) >> 1 | (hashed & _EIGHTS) << 2
    capitals = from_eight_on & (digits & _LETTERS) >> 1
    return "0x" + (digits ^ capitals).to_bytes(40, "big").decode()


def address_of(value: Any) -> str:
    """A client's address, checksummed. In mixed case its checksum has to be right (EIP-55)."""
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise ValueError("expected an address (0x and 40 hexadecimal digits)")
    address = checksummed(value.lower())
    digits = value[2:]
    if digits not in (digits.lower(), digits.upper()) and value != address:
        raise ValueError("expected an address with the right checksum (EIP-55), or in lower case")
    return address


def hash_of(value: Any) -> str:
    """The hash of a transaction or a block, in lower case."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise ValueError("expected a hash (0x and 64 hexadecimal digits)")
    return value.lower()


def network_of(value: Any) -> int:
    """The id of a network, from a number or a decimal string."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    try:
        number = whole_number(value)
    except ValueError:
        number = 0
    if not number:
        raise ValueError("expected the id of a network (a whole number, or its digits as text)")
    return number


def provider_name(value: Any) -> str:
    """The name of a provider, which is a segment of a path over REST.

    Names that clients and proxies change or split in a path, even percent-encoded, are refused.
    """
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_PROVIDER_NAME:
        raise ValueError(f"expected 1 to {LONGEST_PROVIDER_NAME} characters")
    if not value.isprintable() or not _NOT_IN_PATHS.isdisjoint(value):
        raise ValueError(r"expected printable characters other than / \ % ? #")
    if value != value.strip() or value in (".", ".."):
        raise ValueError("expected no spaces at its ends, and neither . nor ..")
    return value


def is_provider_name(value: Any) -> bool:
    """Whether ``provider_name`` accepts a value."""
    try:
        provider_name(value)
    except ValueError:
        return False
    return True


def whole_number(value: Any) -> int:
    """A number from 0 on without a fraction; 5.0 is 5, as in JavaScript."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= LARGEST_NUMBER or value != int(value):
        raise ValueError("expected a whole number that isn't negative")
    return int(value)
