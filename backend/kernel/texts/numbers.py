"""How JSON text writes large numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

ZEROS: Final = "0" * 62
"""Text without so many zeros in a row has no number that ``with_exponents`` changes.

A double has up to 17 digits that count; of more than 78 digits at least 62 are zeros.
"""
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9.]{78,}')
_LONGEST_INTEGER: Final = 78  # digits: those of 256 bits


def with_exponents(json: str) -> str:
    """Return JSON text with the numbers that have many zeros as ``1e+308``.

    PostgreSQL and Python write all digits, which not all clients can read. The value of a number
    stays what it is to the last digit, and integers of up to 256 bits stay as they are.
    """
    return _TOKEN.sub(_with_exponent, json)


def _with_exponent(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == '"' or ("." not in token and len(token.lstrip("-")) <= _LONGEST_INTEGER):
        return token
    try:
        short = repr(float(token))
        return short if Decimal(short) == Decimal(token) else token
    except (ValueError, ArithmeticError):
        return token
