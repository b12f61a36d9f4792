"""What counts for minutes and may be lost: in Redis.

``take`` and ``count`` are one step for all callers of all processes. Without Redis everything here
is ``ServiceUnavailable``: what is kept here decides about signing in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any

import redis
import structlog
from django.conf import settings

from backend.kernel.connections.redis import client
from backend.kernel.errors import ServiceUnavailable

_log = structlog.get_logger(__name__)
_WAIT = 5  # seconds


def keep(name: str, value: str, lifetime: timedelta) -> None:
    """Keep a text under this name for so long."""
    with _connection() as server:
        server.set(_key(name), value, ex=lifetime)


def take(name: str) -> str | None:
    """The text, for the first who asks; it is gone then."""
    with _connection() as server:
        value: Any = server.getdel(_key(name))
    return None if value is None else value.decode()


def count(name: str, lifetime: timedelta) -> int:
    """How often this was called with the name, this time included, since the first of them."""
    with _connection() as server, server.pipeline(transaction=True) as steps:
        steps.set(_key(name), 0, ex=lifetime, nx=True)
        steps.incr(_key(name))
        return int(steps.execute()[1])


def forget(name: str) -> None:
    """Nothing was kept or counted under this name."""
    with _connection() as server:
        server.delete(_key(name))


@contextmanager
def _connection() -> Iterator[redis.Redis]:
    try:
        yield _client(settings.REDIS_URL)
    except redis.RedisError as error:
        _log.warning("redis_unreachable", reason=type(error).__name__)
        raise ServiceUnavailable("Signing in this way isn't possible at the moment.") from None


def _key(name: str) -> str:
    return f"short-lived:{name}"


@cache
def _client(url: str) -> redis.Redis:
    return client(url, socket_timeout=_WAIT, socket_connect_timeout=_WAIT)
