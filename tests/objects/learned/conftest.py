"""Callers of the REST face, and counts of queries that no other test has left."""

from __future__ import annotations

import pytest

from tests.callers import *  # noqa: F403


@pytest.fixture(autouse=True)
def _no_counts() -> None:
    from objects.learned import shape_counts

    shape_counts.forget()
