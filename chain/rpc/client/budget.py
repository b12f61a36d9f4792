"""How many requests a provider may get, counted for all processes together.

The algorithm is GCRA: Redis keeps for each provider the moment at which all that was let through
would be done at the allowed rate, so a bucket is one number. Callers are let through in their turn
and learns how long to wait for it. Without Redis each process counts alone, at a quarter of the
rate, since others may be counting as well.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from time import monotonic
from typing import Final

import redis
from django.conf import settings

from backend.kernel.connections.redis import lasting
from chain.core.failures import TryAgain

LONGEST_WAIT: Final = 2.0
"""Seconds that a caller waits for its turn; one who would have to wait longer isn't counted."""
BURST: Final = 1.0
"""Seconds' worth of calls that may come at once."""
_PATIENCE = 0.25
_AWAY = 2.0
_SHARE_WITHOUT_REDIS = 0.25

# KEYS: the bucket. ARGV in milliseconds: what the calls cost, what may come at once, the longest
# wait. The answer: how long to wait for the turn; if that is too long, nothing was counted.
_SCRIPT = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local done = tonumber(redis.call('GET', KEYS[1]) or 0)
if done < now then done = now end
local wait = math.max(0, done - now - tonumber(ARGV[2]))
if wait <= tonumber(ARGV[3]) then
  done = done + tonumber(ARGV[1])
  redis.call('SET', KEYS[1], string.format('%.3f', done), 'PX', math.ceil(done - now) + 1000)
end
return tostring(wait)
"""


class OverBudget(TryAgain):
    """The provider's turn comes too late; ``wait`` is in how many seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__("the budget of the provider is used up")
        self.wait = wait


class Budget:
    """The calls that one provider allows a second. Safe to be used by several threads."""

    def __init__(self, name: str, rate: float) -> None:
        self._key = f"chain:budget:{name}"
        self._rate = rate
        self._lock = threading.Lock()
        self._done = 0.0
        self._away_until = 0.0

    def take(self, calls: int, longest: float = LONGEST_WAIT) -> float:
        """Count calls, and say in how many seconds it is their turn. Raises ``OverBudget`` if that
        is too long."""
        longest = max(0.0, min(longest, LONGEST_WAIT))
        wait = self._shared(calls, longest)
        if wait is None:
            wait = self._alone(calls, longest)
        if wait > longest:
            raise OverBudget(wait)
        return wait

    def _shared(self, calls: int, longest: float) -> float | None:
        if monotonic() < self._away_until:
            return None
        cost = [calls / self._rate * 1000, BURST * 1000, longest * 1000]
        try:
            return float(_script(settings.REDIS_URL)(keys=[self._key], args=cost)) / 1000
        except (redis.RedisError, OSError):
            self._away_until = monotonic() + _AWAY
            return None

    def _alone(self, calls: int, longest: float) -> float:
        with self._lock:
            now = monotonic()
            done = max(self._done, now)
            wait = max(0.0, done - now - BURST)
            if wait <= longest:
                self._done = done + calls / (self._rate * _SHARE_WITHOUT_REDIS)
            return wait


@lru_cache(maxsize=4)
def client(url: str) -> redis.Redis:
    """The process's connections to Redis for what the gateway keeps there."""
    return lasting(url, _PATIENCE)


@lru_cache(maxsize=4)
def _script(url: str) -> redis.commands.core.Script:
    return client(url).register_script(_SCRIPT)
