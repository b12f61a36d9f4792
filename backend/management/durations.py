"""Times as arguments of commands: ``90s``, ``15m``, ``24h``, ``7d``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LONGEST: Final = timedelta(days=366)
_FORM: Final = re.compile(r"([1-9][0-9]{0,4})([smhd])")


def parse_duration(text: str) -> timedelta:
    """Return a time of at most a year. Raises ``ValueError``."""
    match = _FORM.fullmatch(text)
    length = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None
    if length is None or length > _LONGEST:
        raise ValueError(f"expected a time like 90m, 24h or 7d, not {text!r}")
    return length
