"""Clients of Redis that answer or fail in time, for what must never wait for it.

``asking_once`` and ``lasting`` give up on a connection, and on each answer, after the seconds that
are said. They differ in what a connection that Redis has closed since means: to one that is made
for the moment an error, to one that is kept nothing.
"""

from __future__ import annotations

import sys
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


class Pool(redis.ConnectionPool):
    """A pool that closes the connections of commands that were interrupted.

    An exception that another thread raises (``TimeIsUp``), or a signal, may come between a command
    and its answer, and redis-py puts that connection back: the next command would get the answer.
    """

    def release(self, connection: Any) -> None:
        # redis-py calls this while the exception is raised. Its own errors come after the answer,
        # or have closed the connection.
        error = sys.exception()
        if error is not None and not isinstance(error, Exception):
            connection.disconnect()
        super().release(connection)


def client(url: str, **options: Any) -> redis.Redis:
    """Return a client with such a pool; the options are those of redis-py."""
    return redis.Redis.from_pool(Pool.from_url(url, **options))


def asking_once(url: str, seconds: float, *, decode_responses: bool = False) -> redis.Redis:
    """A client that tries everything once. Its calls raise ``redis.RedisError``."""
    return client(
        url,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        retry=Retry(NoBackoff(), 0),
        decode_responses=decode_responses,
    )


def lasting(url: str, seconds: float) -> redis.Redis:
    """A client to keep: it replaces a connection that was closed, at once and one time a call.
    Its calls raise ``redis.RedisError``."""
    return client(
        url,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    )
