"""Signs of life that the background processes leave in Redis, and that tasks take along."""

from __future__ import annotations

from collections.abc import Sequence
from time import time

import redis

WORKER = "worker"
BEAT = "beat"
JOBS = "jobs"
CHAIN = "chain"
BACKFILL = "backfill"
REALTIME = "realtime"
SENT_AT = "sent_at"
"""The header of a task with the time at which it was sent, in seconds since the epoch."""
_KEPT = 300  # seconds


def note(client: redis.Redis, which: str) -> None:
    """Leave a heartbeat."""
    client.set(f"heartbeat:{which}", repr(time()), ex=_KEPT)


def latest(client: redis.Redis, which: str) -> float | None:
    """When the last sign was left, as seconds since the epoch."""
    return latest_of(client, [which])[which]


def latest_of(client: redis.Redis, names: Sequence[str]) -> dict[str, float | None]:
    """The last heartbeat of each, as ``latest``, in one round trip."""
    values = client.mget([f"heartbeat:{name}" for name in names])
    return {
        name: float(value) if isinstance(value, bytes | str) else None
        for name, value in zip(names, values, strict=True)
    }
