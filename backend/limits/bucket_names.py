"""Whose a bucket is that is nearly full: so that staff can see who runs into a limit.

Keys of buckets are hashes. When one is nearly full, what it is counted by is kept beside it for as
long as its window: addresses, users, sessions, functions. Never the names of accounts: that is what
people type into a log-in form. It costs a command for each such bucket, process and window, and
nothing else. Without Redis no request waits, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any

import redis

from backend.kernel.connections.redis import lasting
from backend.limits.exact_counts import PATIENCE, PAUSE, Bucket

NEARLY = 0.8
"""The share of its limit from which on a bucket is nearly full."""
_PREFIX = "limit-names:"
_LONGEST = 200  # characters
_MOST_REMEMBERED = 10_000

Who = tuple[tuple[str, str], ...]
"""What a bucket is counted by: scopes and their values."""


class Names:
    """The names in one Redis. Made once a process; its threads share it."""

    def __init__(self, url: str) -> None:
        self._redis = lasting(url, PATIENCE)
        self._kept_until: dict[str, float] = {}
        self._away_until = 0.0

    def keep(self, full: Iterable[tuple[Bucket, Who]]) -> None:
        """Keep whose these buckets are. Never raises."""
        now = monotonic()
        new = {
            bucket.key: (bucket, name)
            for bucket, who in full
            if self._kept_until.get(bucket.key, 0.0) < now and (name := _name(who))
        }
        if not new or now < self._away_until:
            return
        try:
            with self._redis.pipeline(transaction=False) as steps:
                for bucket, name in new.values():
                    steps.set(f"{_PREFIX}{bucket.key}", name, px=2 * bucket.window)
                steps.execute()
        except (redis.RedisError, OSError):
            self._away_until = now + PAUSE
            return
        if len(self._kept_until) > _MOST_REMEMBERED:
            self._kept_until.clear()
        for key, (bucket, _) in new.items():
            self._kept_until[key] = now + bucket.window / 1000


def read(client: redis.Redis, keys: Iterable[str]) -> Mapping[str, str]:
    """Whose these buckets are, as far as that is known. Raises ``RedisError``."""
    requested = list(keys)
    if not requested:
        return {}
    names: Any = client.mget([f"{_PREFIX}{key}" for key in requested])
    return {
        key: name.decode(errors="replace")
        for key, name in zip(requested, names, strict=True)
        if name is not None
    }


def _name(who: Who) -> str:
    if any(scope == "account" for scope, _ in who):
        return ""
    return ", ".join(f"{scope} {value}".strip() for scope, value in who)[:_LONGEST]
