"""Log records that are kept in Redis, for tests of the log view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from backend.logs import setup, store

__all__ = ["log_store_redis"]


@pytest.fixture
def log_store_redis(settings: Any) -> Iterator[redis.Redis]:
    """Records of this process are kept for the test; the Redis that has them."""
    with redis.Redis.from_url(settings.REDIS_URL) as server:
        server.delete(store.STREAM)
        setup.configure("INFO", "json", "test")
        store.configure(settings.REDIS_URL, 1000)
        yield server
        store.flush()  # else a record of this test could come late, into the next one's
        store.configure(settings.REDIS_URL, 0)
        setup.configure("WARNING", "json", "test")
        server.delete(store.STREAM)
