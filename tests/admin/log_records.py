"""Log records that are kept in Redis, for tests of the log view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from backend import log_store, logs

__all__ = ["kept"]


@pytest.fixture
def kept(settings: Any) -> Iterator[redis.Redis]:
    """Records of this process are kept for the test; the Redis that has them."""
    with redis.Redis.from_url(settings.REDIS_URL) as server:
        server.delete(log_store.STREAM)
        logs.configure("INFO", "json", "test")
        log_store.configure(settings.REDIS_URL, 1000)
        yield server
        log_store.configure(settings.REDIS_URL, 0)
        logs.configure("WARNING", "json", "test")
        server.delete(log_store.STREAM)
