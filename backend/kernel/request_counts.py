"""How many requests there were, and how long they took, over all web processes.

Each process counts for itself and adds its part to hashes in Redis every few seconds, so counting
costs a request next to nothing: two hashes of totals for ``/metrics``, and one of each minute,
which a task stores in the database (``backend.overview``). Without Redis the part waits; what a
process has when it is killed is lost.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Final

import redis
from django.conf import settings

from backend.kernel import latencies
from backend.kernel.connections.redis import asking_once

KEY: Final = "metrics:requests"
DURATIONS_KEY: Final = "metrics:durations"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
LIMITS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Durations in seconds up to which requests are counted together; one more group is above them."""
MINUTE: Final = 60
"""Seconds of the minutes in which requests are counted; a minute has the number of minutes since
the epoch before it."""
HOUR: Final = 3600
REPORTS: Final = "reports"
"""The field of a minute's hash with the number of additions, also of those without a request."""
_MINUTES_STORED: Final = 86_400  # seconds
_USERS_STORED: Final = 31 * 86_400  # seconds
MOST_MINUTES: Final = 120
"""Minutes for which a process waits for Redis with what it has counted in them."""
_MOST_USERS: Final = 10_000
"""Users that a process remembers between two additions; more aren't counted."""
_EVERY: Final = 5.0
_PATIENCE: Final = 0.25
_SECONDS: Final = "seconds"

_Place = tuple[str, int]
Minute = dict[tuple[int, int], int]
"""Numbers of requests by the first digit of their status and their group of ``latencies``."""
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
        self.is_added_elsewhere = False
        self.client: redis.Redis | None = None

    def clear(self) -> None:
        self.requests: dict[_Place, int] = defaultdict(int)
        self.seconds: dict[_Place, float] = defaultdict(float)
        self.durations: dict[Kind, Taken] = defaultdict(Taken)
        self.minutes: dict[int, Minute] = defaultdict(lambda: defaultdict(int))
        self.users: set[str] = set()


_counts = _Counts()


def minute_key(minute: int) -> str:
    """Return the name of the hash of a minute: numbers of requests by ``STATUS_CLASS GROUP`` of
    ``latencies``, such as ``2 7``."""
    return f"requests:minute:{minute}"


def users_key(hour: int) -> str:
    """Return the name of the sketch (HyperLogLog) of the users of an hour since the epoch."""
    return f"requests:users:{hour}"


def count(
    method: str,
    route: str,
    status: int,
    seconds: float,
    *,
    is_routine: bool = False,
    user: str | None = None,
) -> None:
    """Count a request that has been answered. ``route`` has no blanks and is one of few.

    Routine requests, those of the admin and of probes, aren't part of the minutes.
    """
    method = method if method in METHODS else "other"
    with _counts.lock:
        _counts.requests[method, status] += 1
        _counts.seconds[method, status] += seconds
        taken = _counts.durations[method, route, f"{status // 100}xx"]
        taken.counts[bisect_left(LIMITS, seconds)] += 1
        taken.seconds += seconds
        if not is_routine:
            minute = _counts.minutes[int(time()) // MINUTE]
            minute[status // 100, latencies.group_of(seconds)] += 1
            if user is not None and len(_counts.users) < _MOST_USERS:
                _counts.users.add(user)
        if _counts.is_added_elsewhere or monotonic() - _counts.added_at < _EVERY:
            return
    add_up()


def add_up_in_thread() -> None:
    """Add what this process has counted; requests don't do so from the first call on."""
    _counts.is_added_elsewhere = True
    add_up()


def add_up() -> None:
    """Add what this process has counted to what all have."""
    with _counts.lock:
        _counts.added_at = monotonic()
        requests, seconds, durations = _counts.requests, _counts.seconds, _counts.durations
        minutes, users = _counts.minutes, _counts.users
        _counts.clear()
    if not requests and not _counts.is_added_elsewhere:
        return
    now = int(time())
    try:
        with _client().pipeline(transaction=True) as pipeline:
            for minute in {now // MINUTE, *minutes}:
                key = minute_key(minute)
                pipeline.hincrby(key, REPORTS, 1)
                for (status_class, group), number in minutes.get(minute, {}).items():
                    pipeline.hincrby(key, f"{status_class} {group}", number)
                pipeline.expire(key, _MINUTES_STORED)
            if users:
                key = users_key(now // HOUR)
                pipeline.pfadd(key, *users)
                pipeline.expire(key, _USERS_STORED)
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
            for minute in sorted(minutes)[-MOST_MINUTES:]:
                for answers, number in minutes[minute].items():
                    _counts.minutes[minute][answers] += number
            if len(_counts.users) < _MOST_USERS:
                _counts.users |= users


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
