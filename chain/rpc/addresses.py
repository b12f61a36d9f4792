"""Addresses of nodes as clients and operators enter them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from backend.kernel.outgoing import parts_of

LONGEST: Final = 2000
"""Characters of an address."""


def endpoint_of(*schemes: str) -> Callable[[Any], str]:
    """Return what reads an address with one of these schemes: it returns the text, or raises
    ``ValueError`` with what is expected."""
    beginnings = " or ".join(f"{scheme}://" for scheme in schemes)

    def read(value: Any) -> str:
        parts = parts_of(value) if isinstance(value, str) and len(value) <= LONGEST else None
        if parts is None or parts.scheme not in schemes:
            raise ValueError(f"expected an address that begins with {beginnings}")
        return str(value)

    return read
