"""Web processes, their minutes and stored figures, for the tests of the overview."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import redis
from django.conf import settings

from backend.kernel import request_counts
from backend.overview import storage
from backend.overview.storage import Figures

MINUTE = timedelta(minutes=1)


def this_minute() -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0)


@pytest.fixture
def server() -> Iterator[redis.Redis]:
    """Redis without anything that this process or another one has counted."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        request_counts.add_up()
        client.flushdb()
        yield client
        client.flushdb()


def store(requests: dict[int, int] | None = None, *, at: datetime, **others: float) -> None:
    """Store a minute; ``requests`` are numbers by status class, each of 10 to 12 ms."""
    group = 14
    counts = None if requests is None else {(kind, group): n for kind, n in requests.items()}
    storage.write({at: Figures(counts, others)})
