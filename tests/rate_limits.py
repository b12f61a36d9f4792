"""Fixtures for tests of rate limits: rules for one test, and a Redis that has counted nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

__all__ = ["limit", "nothing_counted"]

Limit = Callable[..., None]


@pytest.fixture(autouse=True)
def nothing_counted() -> Iterator[None]:
    """The test begins with empty buckets, and leaves none."""
    _empty()
    yield
    _empty()


def _empty() -> None:
    from django.conf import settings

    from backend.limits import decisions

    decisions._approximate_counter.cache_clear()
    decisions._process_counter.cache_clear()
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        for key in client.scan_iter("limits:*"):
            client.delete(key)


@pytest.fixture
def limit(settings: Any) -> Limit:
    """Set the rules of this test: by default three requests a minute from an address."""

    def set_rules(*rules: dict[str, Any] | str) -> None:
        plain = {"count": 3, "window": 60, "per": "ip"}
        value = [rule if isinstance(rule, str) else {**plain, **rule} for rule in rules]
        settings.SERVICE = {**settings.SERVICE, "RATE_LIMITS": value}

    return set_rules
