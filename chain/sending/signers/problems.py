"""What keeps a signer from signing."""

from __future__ import annotations


class CannotSign(Exception):
    """A signer can't be used. The text is for operators and for clients; it has no secrets."""
