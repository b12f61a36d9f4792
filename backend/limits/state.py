"""How full the buckets of rate limits are, for the admin. Nothing is counted by looking.

A bucket's key doesn't show whose it is: names and addresses are hashed. For nearly full buckets it
is stored (``bucket_names``), except names of accounts; others are looked up by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import redis
from django.conf import settings

from backend.kernel.errors import ServiceUnavailable
from backend.kernel.principal import Authority, Principal
from backend.limits import bucket_names
from backend.limits.decisions import Request, buckets_of
from backend.settings.conf import service_settings
from backend.settings.rate_limits import Rule, read

MOST_SCANNED = 10_000  # keys
_AT_ONCE = 1000
_PATIENCE = 5.0  # seconds
_KEY = re.compile(r"limits:([0-9a-f]{16}):[0-9a-f]{32}").fullmatch
_BY_ADDRESS = frozenset(("ip", "key", "session", "user"))


@dataclass(frozen=True)
class Fullness:
    """A bucket: ``used`` of the rule's count, more again in ``more_in`` seconds (0 if nothing is
    used), and ``whose`` it is if that is known."""

    key: str
    rule: Rule
    used: int
    more_in: float
    whose: str = ""

    @property
    def share(self) -> float:
        """How full it is, from 0 to 1."""
        return min(1.0, self.used / self.rule.count)


@dataclass(frozen=True)
class Overview:
    """The fullest buckets first; ``complete`` unless some were not read."""

    buckets: list[Fullness]
    complete: bool


def rules_in_force() -> tuple[Rule, ...]:
    """The rules of the setting ``RATE_LIMITS``."""
    return read(service_settings.RATE_LIMITS)


def fullest(limit: int = 100) -> Overview:
    """The fullest buckets. Raises ``ServiceUnavailable`` without Redis."""
    with _redis() as client:
        keys: list[str] = []
        complete = True
        for key in client.scan_iter(match="limits:*", count=_AT_ONCE):
            if len(keys) == MOST_SCANNED:
                complete = False
                break
            keys.append(key.decode())
        buckets = _fullness(client, keys)
        buckets.sort(key=lambda bucket: (-bucket.share, -bucket.used, bucket.key))
        names = bucket_names.read(client, (bucket.key for bucket in buckets[:limit]))
    return Overview(
        [replace(bucket, whose=names.get(bucket.key, "")) for bucket in buckets[:limit]], complete
    )


def of_caller(*, address: str = "", user_id: str = "", account: str = "") -> list[Fullness]:
    """The buckets of an address, a user, or an account's name; those that count nothing too.

    Rules that count per function, session or key are asked for the address or the user alone.
    Raises ``ServiceUnavailable`` without Redis.
    """
    principal = Principal(Authority.CLIENT, user_id=user_id or None)
    parameters = ({"username": account},) if account else ()
    keys: list[str] = []
    for rule in rules_in_force():
        if not _can_tell(rule, address, user_id, account):
            continue
        request = Request((rule,), "", address, principal, "", parameters)
        keys += (bucket.key for bucket in buckets_of(request))
    with _redis() as client:
        return _fullness(client, keys, also_empty=True)


def _can_tell(rule: Rule, address: str, user_id: str, account: str) -> bool:
    """Whether the rule counts by what is given, and by nothing else."""
    for scope in rule.per:
        if scope == "function":
            return False
        if scope == "account" and not account:
            return False
        if scope == "user" and user_id:
            continue
        if scope in _BY_ADDRESS and not address:
            return False
    return True


def reset(key: str) -> bool:
    """Empty a bucket. Return whether there was one. Raises ``ServiceUnavailable``."""
    if not _KEY(key):
        return False
    with _redis() as client:
        return bool(client.delete(key))


def _fullness(
    client: redis.Redis, keys: Iterable[str], *, also_empty: bool = False
) -> list[Fullness]:
    rules = {rule.name: rule for rule in rules_in_force()}
    seconds, microseconds = client.time()
    now = seconds * 1000 + microseconds // 1000
    buckets = []
    for key, slots in _read(client, keys):
        named = _KEY(key)
        rule = rules.get(named[1]) if named else None
        if rule is None:
            continue  # of a rule that is in force no more
        used, more = _level(rule, slots, now)
        if used or also_empty:
            buckets.append(Fullness(key, rule, used, more / 1000))
    return buckets


def _read(client: redis.Redis, keys: Iterable[str]) -> Iterator[tuple[str, dict[bytes, bytes]]]:
    keys = list(keys)
    for begin in range(0, len(keys), _AT_ONCE):
        some = keys[begin : begin + _AT_ONCE]
        with client.pipeline(transaction=False) as steps:
            for key in some:
                steps.hgetall(key)
            answers: list[Any] = steps.execute()
        yield from zip(some, answers, strict=True)


def _level(rule: Rule, slots: dict[bytes, bytes], now: int) -> tuple[int, int]:
    """What counts at the moment, and the milliseconds until the oldest of it doesn't, as the
    script of ``exact_counts`` counts."""
    width = -(-rule.window // 60)
    counting = {
        end: int(number)
        for slot, number in slots.items()
        if (end := (int(slot) + 1) * width + rule.window) > now
    }
    used = left = sum(counting.values())
    for end in sorted(counting):
        left -= counting[end]
        if left < rule.count:
            return used, end - now
    return used, 0


@contextmanager
def _redis() -> Iterator[redis.Redis]:
    """A connection whose absence is an error of the service."""
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE
        ) as client:
            yield client
    except redis.RedisError:
        raise ServiceUnavailable("Redis, which keeps the counts, doesn't answer.") from None
