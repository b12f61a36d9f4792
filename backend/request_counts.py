"""How many requests there were, and how long they took, over all web processes.

Each process counts for itself and adds its part to a hash in Redis every few seconds, so counting
costs a request next to nothing. Without Redis the part waits; what a process has when it is killed
is lost.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from time import monotonic
from typing import Final

import redis
from django.conf import settings

from backend.redis_clients import asking_once

KEY: Final = "metrics:requests"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_EVERY: Final = 5.0
_PATIENCE: Final = 0.25

_Place = tuple[str, int]


class _Counts:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests: dict[_Place, int] = defaultdict(int)
        self.seconds: dict[_Place, float] = defaultdict(float)
        self.added_at = monotonic()
        self.client: redis.Redis | None = None


_counts = _Counts()


def count(method: str, status: int, seconds: float) -> None:
    """Count a request that has been answered."""
    place = (method if method in METHODS else "other", status)
    with _counts.lock:
        _counts.requests[place] += 1
        _counts.seconds[place] += seconds
        if monotonic() - _counts.added_at < _EVERY:
            return
    add_up()


def add_up() -> None:
    """Add what this process has counted to what all have."""
    with _counts.lock:
        _counts.added_at = monotonic()
        requests, seconds = dict(_counts.requests), dict(_counts.seconds)
        _counts.requests.clear()
        _counts.seconds.clear()
    if not requests:
        return
    try:
        with _client().pipeline(transaction=True) as pipeline:
            for (method, status), number in requests.items():
                pipeline.hincrby(KEY, f"{method} {status} requests", number)
                pipeline.hincrbyfloat(KEY, f"{method} {status} seconds", seconds[method, status])
            pipeline.execute()
    except redis.RedisError:
        with _counts.lock:
            for place, number in requests.items():
                _counts.requests[place] += number
                _counts.seconds[place] += seconds[place]


def totals(client: redis.Redis) -> Mapping[_Place, tuple[int, float]]:
    """Requests and seconds by method and status. Raises ``RedisError``."""
    found: dict[_Place, list[float]] = defaultdict(lambda: [0, 0.0])
    kept: dict[bytes, bytes] = client.hgetall(KEY)  # type: ignore[assignment]
    for name, value in kept.items():
        method, status, what = name.decode().split(" ")
        found[method, int(status)][what == "seconds"] = float(value)
    return {place: (int(number), seconds) for place, (number, seconds) in found.items()}


def _client() -> redis.Redis:
    if _counts.client is None:
        _counts.client = asking_once(settings.REDIS_URL, _PATIENCE)
    return _counts.client
