"""How JSON text writes large numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

ZEROS: Final = "0" * 62
"""Text without so many zeros in a row has no number that ``with_exponents`` changes.

A double has up to 17 digits that count; of more than 78 digits at least 62 are zeros.
"""
_LONG: Final = re.compile(r"(?<![0-9.eE+-])-?[0-9][0-9.]{77,}(?![0-9.eE+-])")
_LONGEST_INTEGER: Final = 78  # digits: those of 256 bits


def with_exponents(json: str) -> str:
    """Return JSON text with the numbers that have many zeros as ``1e+308``.

    PostgreSQL and Python write all digits, which not all clients can read. The value of a number
    stays what it is to the last digit, and integers of up to 256 bits stay as they are.
    """
    parts = []
    end = 0
    is_text = False
    for match in _LONG.finditer(json):
        between = json[end : match.start()]
        # Strings may hold digits. Everybody may store some, so each string isn't looked at alone.
        quotes = between.replace("\\\\", "").replace('\\"', "").count('"')
        is_text ^= quotes % 2 == 1
        parts += [between, match[0] if is_text else _with_exponent(match[0])]
        end = match.end()
    return "".join((*parts, json[end:]))


def _with_exponent(number: str) -> str:
    if "." not in number and len(number.lstrip("-")) <= _LONGEST_INTEGER:
        return number
    try:
        short = repr(float(number))
        return short if Decimal(short) == Decimal(number) else number
    except (ValueError, ArithmeticError):
        return number
