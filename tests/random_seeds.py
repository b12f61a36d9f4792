"""Chance, for tests that go on at length: one case is the same in every run, the others are new."""

from __future__ import annotations

import os
from random import SystemRandom

DRAWN = "drawn"
"""A case whose seed is drawn when it runs."""


def seed_of(case: int | str) -> int:
    """The case's seed. One that is drawn is printed, as a failure shows; ``TEST_SEED`` gives it
    again."""
    if isinstance(case, int):
        return case
    seed = int(os.environ.get("TEST_SEED") or SystemRandom().randrange(10**9))
    print(f"TEST_SEED={seed}")
    return seed
