"""Text from clients in error messages."""

from __future__ import annotations


def shown(text: object) -> str:
    """Return a client's text as error messages repeat it: printable, at most 80 characters."""
    printable = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text)[:80]
    )
    return printable if len(str(text)) <= 80 else printable + "…"
