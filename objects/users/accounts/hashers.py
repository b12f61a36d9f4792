"""How passwords are hashed."""

from __future__ import annotations

from django.contrib.auth.hashers import Argon2PasswordHasher


class Argon2(Argon2PasswordHasher):
    """Argon2id with the least that OWASP recommends: 19 MiB, two passes, one lane.

    Django's own 100 MiB would let a few parallel log-ins take a small machine's memory.
    """

    time_cost = 2
    memory_cost = 19_456
    parallelism = 1
