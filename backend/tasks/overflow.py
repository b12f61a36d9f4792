"""Tasks that got no place in a lane, in Redis: a queue for each server, which no worker consumes.

A task moves to the end of its server's queue, and from there to the front of the queue that workers
consume when there may be a place. So it takes no memory of a worker however many wait, and none is
lost with a worker.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any, Final, cast

import redis
from celery import Task
from django.conf import settings
from kombu import Queue

from backend.kernel.connections.redis import lasting
from backend.tasks import broker

_CELERY: Final = "celery:"
_PREFIX: Final = "overflow:"
_NAMES: Final = f"{_CELERY}overflows"
"""The set of the queues' names. A queue is added again with its next task, and the set has at most
one name for each trigger and for each kind of email."""


def put(task: Task[Any, Any], name: str) -> None:
    """Send the task that is running to the queue of this name. Raises ``BrokerAway``."""
    request = task.request
    # Without an exchange, a queue needs no declaration.
    broker.send(
        task,
        *(request.args or ()),
        kwargs=request.kwargs,
        retries=request.retries,
        queue=Queue(_PREFIX + name),
        declare=[],
    )
    # Without its name a queue still moves on with each task that ends.
    with suppress(redis.RedisError):
        _client().sadd(_NAMES, name)


def start_next(name: str) -> None:
    """Have a worker run the first task of a queue. If Redis is away, the sweep does it later."""
    with suppress(redis.RedisError):
        _move(_client(), name)


def start_all() -> None:
    """Have workers try the first task of each queue, which starts the next one: the worker that
    was to do so may have died. Without a place a task goes to the end, so the order isn't kept.
    Raises ``RedisError``."""
    client = _client()
    for name in _names(client):
        if _move(client, name):
            continue
        client.srem(_NAMES, name)
        # A task may have come since.
        if client.llen(_key(name)):
            client.sadd(_NAMES, name)


def length(client: redis.Redis) -> int:
    """Return how many tasks wait. Raises ``RedisError``."""
    return sum(int(str(client.llen(_key(name)))) for name in _names(client))


def _names(client: redis.Redis) -> list[str]:
    return [name.decode() for name in cast(set[bytes], client.smembers(_NAMES))]


def _move(client: redis.Redis, name: str) -> bool:
    queue = f"{_CELERY}{settings.CELERY_TASK_DEFAULT_QUEUE}"
    # kombu puts tasks at the left and takes them at the right.
    return client.lmove(_key(name), queue, "RIGHT", "RIGHT") is not None


def _key(name: str) -> str:
    return f"{_CELERY}{_PREFIX}{name}"


@cache
def _client() -> redis.Redis:
    return lasting(settings.REDIS_URL, broker.PATIENCE)
