"""How passwords are hashed."""

from __future__ import annotations

import re

import bcrypt
from django.contrib.auth.hashers import Argon2PasswordHasher, BCryptPasswordHasher

_BCRYPT_READS = 72
"""The bytes of a password that bcrypt reads; its library refuses longer ones."""

HIGHEST_COST = 12
"""Of bcrypt's hashes that come from elsewhere: a higher one takes seconds at each login."""


class Argon2(Argon2PasswordHasher):
    """Argon2id with the least that OWASP recommends: 19 MiB, two passes, one lane.

    Django's own 100 MiB would let a few parallel log-ins take a small machine's memory.
    """

    time_cost = 2
    memory_cost = 19_456
    parallelism = 1


class Bcrypt(BCryptPasswordHasher):
    """The hashes of imported accounts (``$2b$…``). The next login replaces them by Argon2's."""

    def encode(self, password: str, salt: str | bytes) -> str:
        text = password.encode()[:_BCRYPT_READS]
        data = bcrypt.hashpw(text, salt if isinstance(salt, bytes) else salt.encode())
        return f"{self.algorithm}${data.decode('ascii')}"

    def verify(self, password: str, encoded: str) -> bool:
        try:
            return super().verify(password, encoded)
        except ValueError:  # looks like a hash, and is none: its salt isn't one
            return False


def encoded_bcrypt(password_hash: str) -> str | None:
    """Return the stored form of a bcrypt hash, or None if it isn't one, or costs too much."""
    match = re.fullmatch(r"\$2[aby]\$((\d\d)\$[./A-Za-z0-9]{53})", password_hash, re.ASCII)
    if match is None or int(match[2]) > HIGHEST_COST:
        return None
    # Implementations of today compute the same under all three names.
    return f"{Bcrypt.algorithm}$$2b${match[1]}"
