"""Status reports of realtime processes in Redis, for the admin, ``/metrics`` and commands."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from time import time
from typing import Any, Final

import msgspec
import redis
from django.conf import settings

from backend.kernel.connections.redis import asking_once
from backend.kernel.process import heartbeats
from backend.logs.setup import get_logger

_INDEX: Final = "realtime:processes"
_INTERVAL: Final = 5.0  # seconds
EXPIRY: Final = 15  # seconds
_TIMEOUT: Final = 2

log = get_logger("realtime")


def _key(process_id: str) -> str:
    return f"realtime:{process_id}"


async def report(process_id: str, status_of: Callable[[], dict[str, Any]]) -> None:
    """Store the status of a process in Redis every few seconds, until cancelled.

    Failures of Redis are logged and ignored.
    """
    is_failing = False
    with _client() as client:
        while True:
            status = status_of() | {"at": time()}
            try:
                await asyncio.to_thread(_store, client, process_id, status)
                is_failing = False
            except (redis.RedisError, OSError) as error:
                if not is_failing:
                    log.warning("no report can be left in Redis", error=type(error).__name__)
                is_failing = True
            await asyncio.sleep(_INTERVAL)


def _store(client: redis.Redis, process_id: str, status: dict[str, Any]) -> None:
    pipe = client.pipeline(transaction=False)
    pipe.set(_key(process_id), msgspec.json.encode(status), ex=EXPIRY)
    pipe.zadd(_INDEX, {process_id: time()})
    pipe.zremrangebyscore(_INDEX, 0, time() - 10 * EXPIRY)
    pipe.execute()
    if status["ready"]:
        heartbeats.note(client, heartbeats.REALTIME)


async def withdraw(process_id: str) -> None:
    """Remove the report of a process that stops."""

    def remove() -> None:
        with _client() as client:
            client.delete(_key(process_id))
            client.zrem(_INDEX, process_id)

    with contextlib.suppress(redis.RedisError, OSError):  # it expires automatically
        await asyncio.to_thread(remove)


def processes() -> list[dict[str, Any]]:
    """Return the status of each running process: ``Process.status``, and ``at``, its time.

    Raises ``redis.RedisError``.
    """
    with _client() as client:
        ids = client.zrangebyscore(_INDEX, time() - EXPIRY, "+inf")
        reports = client.mget([_key(process_id.decode()) for process_id in ids]) if ids else []
    statuses = (msgspec.json.decode(report) for report in reports if report is not None)
    return sorted(statuses, key=lambda status: (status["host"], status["pid"]))


def _client() -> redis.Redis:
    return asking_once(settings.REDIS_URL, _TIMEOUT)
