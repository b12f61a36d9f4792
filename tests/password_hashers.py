"""Password hashers of the tests; a deployment chooses its own by a setting too."""

from __future__ import annotations

from objects.users.accounts.hashers import Argon2


class Quick(Argon2):
    """The service's, with next to no work: most tests only need a user who is logged in."""

    time_cost = 1
    memory_cost = 8


class Counting(Quick):
    """``verified`` is how many passwords were checked against a hash."""

    verified = 0

    def verify(self, password: str, encoded: str) -> bool:
        Counting.verified += 1
        return super().verify(password, encoded)
