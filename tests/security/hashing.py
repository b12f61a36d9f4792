"""A password hasher that counts its work; a deployment chooses hashers by a setting too."""

from __future__ import annotations

from objects.users.hashing import Argon2


class Counting(Argon2):
    """``verified`` is how many passwords were checked against a hash."""

    verified = 0

    def verify(self, password: str, encoded: str) -> bool:
        Counting.verified += 1
        return super().verify(password, encoded)
