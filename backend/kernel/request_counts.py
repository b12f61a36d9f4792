"""How many requests there were, and how long they took, over all web processes.

Each process counts for itself and adds its part to two hashes in Redis every few seconds, so
counting costs a request next to nothing. Without Redis the part waits; what a process has when it
is killed is lost.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import redis
from django.conf import settings

from backend.kernel.connections.redis import asking_once

KEY: Final = "metrics:requests"
DURATIONS_KEY: Final = "metrics:durations"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
LIMITS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Durations in seconds up to which requests are counted together; one more group is above them."""
_EVERY: Final = 5.0
_PATIENCE: Final = 0.25
_SECONDS: Final = "seconds"

_Place = tuple[str, int]
Kind = tuple[str, str, str]
"""Method, route and class of the status (``2xx``)."""


@dataclass
class Taken:
    """How many requests took how long: a number for each of ``LIMITS``, one for those above."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(LIMITS) + 1))
    seconds: float = 0.0


class _Counts:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clear()
        self.added_at = monotonic()
        self.client: redis.Redis | None = None

    def clear(self) -> None:
        self.requests: dict[_Place, int] = defaultdict(int)
        self.seconds: dict[_Place, float] = defaultdict(float)
        self.durations: dict[Kind, Taken] = defaultdict(Taken)


_counts = _Counts()


def count(method: str, route: str, status: int, seconds: float) -> None:
    """Count a request that has been answered. ``route`` has no blanks and is one of few."""
    method = method if method in METHODS else "other"
    with _counts.lock:
        _counts.requests[method, status] += 1
        _counts.seconds[method, status] += seconds
        taken = _counts.durations[method, route, f"{status // 100}xx"]
        taken.counts[bisect_left(LIMITS, seconds)] += 1
        taken.seconds += seconds
        if monotonic() - _counts.added_at < _EVERY:
            return
    add_up()


def add_up() -> None:
    """Add what this process has counted to what all have."""
    with _counts.lock:
        _counts.added_at = monotonic()
        requests, seconds, durations = _counts.requests, _counts.seconds, _counts.durations
        _counts.clear()
    if not requests:
        return
    try:
        with _client().pipeline(transaction=True) as pipeline:
            for (method, status), number in requests.items():
                pipeline.hincrby(KEY, f"{method} {status} requests", number)
                pipeline.hincrbyfloat(KEY, f"{method} {status} seconds", seconds[method, status])
            for kind, taken in durations.items():
                name = " ".join(kind)
                pipeline.hincrbyfloat(DURATIONS_KEY, f"{name} {_SECONDS}", taken.seconds)
                for place, number in enumerate(taken.counts):
                    if number:
                        pipeline.hincrby(DURATIONS_KEY, f"{name} {place}", number)
            pipeline.execute()
    except redis.RedisError:
        with _counts.lock:
            for answered, number in requests.items():
                _counts.requests[answered] += number
                _counts.seconds[answered] += seconds[answered]
            for kind, taken in durations.items():
                _add(_counts.durations[kind], taken)


def _add(to: Taken, more: Taken) -> None:
    to.counts = [old + new for old, new in zip(to.counts, more.counts, strict=True)]
    to.seconds += more.seconds


def totals(client: redis.Redis) -> Mapping[_Place, tuple[int, float]]:
    """Requests and seconds by method and status. Raises ``RedisError``."""
    sums: dict[_Place, list[float]] = defaultdict(lambda: [0, 0.0])
    stored: dict[bytes, bytes] = client.hgetall(KEY)  # type: ignore[assignment]
    for name, value in stored.items():
        method, status, what = name.decode().split(" ")
        sums[method, int(status)][what == "seconds"] = float(value)
    return {place: (int(number), seconds) for place, (number, seconds) in sums.items()}


def durations(client: redis.Redis) -> Mapping[Kind, Taken]:
    """How long requests took. Raises ``RedisError``."""
    durations_by_kind: dict[Kind, Taken] = defaultdict(Taken)
    stored: dict[bytes, bytes] = client.hgetall(DURATIONS_KEY)  # type: ignore[assignment]
    for name, value in stored.items():
        method, route, status, what = name.decode().split(" ")
        taken = durations_by_kind[method, route, status]
        if what == _SECONDS:
            taken.seconds = float(value)
        elif int(what) < len(taken.counts):
            taken.counts[int(what)] = int(value)
    return durations_by_kind


def _client() -> redis.Redis:
    if _counts.client is None:
        _counts.client = asking_once(settings.REDIS_URL, _PATIENCE)
    return _counts.client
