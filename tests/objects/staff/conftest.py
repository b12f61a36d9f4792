"""Settings of staff for one test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.rate_limits import limit, nothing_counted

__all__ = ["limit", "nothing_counted"]


@pytest.fixture
def mode(settings: Any, limit: Any) -> Callable[[str], None]:
    """Set ``STAFF_SECOND_FACTOR``; without limits of guesses."""
    limit()

    def choose(value: str) -> None:
        settings.SERVICE = {**settings.SERVICE, "STAFF_SECOND_FACTOR": value}

    return choose
