"""Clients of Redis that answer or fail in time, for what must never wait for it.

Both give up on a connection, and on each answer, after the seconds that are said. They differ in
what a connection that Redis has closed since means: to one that is made for the moment an error,
to one that is kept nothing.
"""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


def asking_once(url: str, seconds: float, *, decode_responses: bool = False) -> redis.Redis:
    """A client that tries everything once. Its calls raise ``redis.RedisError``."""
    return redis.Redis.from_url(
        url,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        retry=Retry(NoBackoff(), 0),
        decode_responses=decode_responses,
    )


def lasting(url: str, seconds: float) -> redis.Redis:
    """A client to keep: it replaces a connection that was closed, at once and one time a call.
    Its calls raise ``redis.RedisError``."""
    return redis.Redis.from_url(
        url,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    )
