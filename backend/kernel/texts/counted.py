"""Numbers of things, for people."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """Return the number with the name of the things: ``1 file``, ``1,200 files``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
