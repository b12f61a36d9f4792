"""Counting in Redis: one script, which decides and counts in one step.

A window slides. It is cut into sixtieths, and Redis keeps how many requests came in each of them;
what came in one counts until all of it is older than the window. So in no period as long as the
window do more requests pass than the limit, a refused request costs nothing, and a bucket is never
more than 61 small numbers, for any limit. The clock is that of Redis, the same for every
process and machine; tests pass a time instead.

Without Redis nothing is counted: ``count`` answers None, at once while Redis is known to be away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import redis

from backend.kernel.connections.redis import lasting
from backend.logs.setup import get_logger

PATIENCE = 0.25
"""Seconds that a request waits for Redis."""
PAUSE = 2.0
"""Seconds without a new request after Redis didn't answer."""
_WARN_EVERY = 60.0

log = get_logger("limits")

BUCKETS = """
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function read(key, limit, window)
  local width = math.ceil(window / 60)
  local bucket = {
    limit = limit, window = window, width = width, now = math.floor(now / width),
    slots = {}, used = 0, added = 0, gone = {}
  }
  local stored = redis.call('HGETALL', key)
  for field = 1, #stored, 2 do
    local slot = tonumber(stored[field])
    if (slot + 1) * width + window <= now then
      table.insert(bucket.gone, stored[field])
    else
      bucket.slots[slot] = tonumber(stored[field + 1])
      bucket.used = bucket.used + bucket.slots[slot]
    end
  end
  return bucket
end

-- Milliseconds until the bucket has room for one more than now, or than none if it is full.
local function waiting(bucket)
  local order = {}
  for slot in pairs(bucket.slots) do table.insert(order, slot) end
  table.sort(order)
  local left = bucket.used
  for _, slot in ipairs(order) do
    left = left - bucket.slots[slot]
    if left < bucket.limit then return (slot + 1) * bucket.width + bucket.window - now end
  end
  return 0
end

local function add(bucket, number)
  bucket.used = bucket.used + number
  bucket.added = bucket.added + number
  bucket.slots[bucket.now] = (bucket.slots[bucket.now] or 0) + number
end

local function write(key, bucket)
  if bucket.added > 0 then
    if #bucket.gone > 0 then redis.call('HDEL', key, unpack(bucket.gone)) end
    redis.call('HINCRBY', key, string.format('%.0f', bucket.now), bucket.added)
    redis.call('PEXPIRE', key, bucket.window + bucket.width)
  end
end
"""
"""The start of every script that reads and writes buckets. ARGV[1] is the time in milliseconds, or
an empty text for Redis's own."""

# KEYS: the buckets. ARGV: the time in milliseconds, or an empty text for Redis's own; 1 if all
# requests pass or none; limit and window of each bucket; for each request the number of its
# buckets, and their places in KEYS. The answer has for each request 1 or 0 (passes, or doesn't),
# and for each of its buckets what remains and after how many milliseconds there will be more.
_SCRIPT = (
    BUCKETS
    + """
local together = ARGV[2] == '1'
local at = 3
local buckets = {}
for place, key in ipairs(KEYS) do
  buckets[place] = read(key, tonumber(ARGV[at]), tonumber(ARGV[at + 1]))
  at = at + 2
end

local answers = {}
local refused = false
while at <= #ARGV do
  local asked = {}
  for place = at + 1, at + tonumber(ARGV[at]) do
    table.insert(asked, buckets[tonumber(ARGV[place])])
  end
  at = at + 1 + #asked
  local passes = 1
  for _, bucket in ipairs(asked) do
    if bucket.used >= bucket.limit then passes = 0 end
  end
  local answer = {passes}
  for _, bucket in ipairs(asked) do
    if passes == 1 then add(bucket, 1) end
    table.insert(answer, bucket.limit - bucket.used)
    table.insert(answer, waiting(bucket))
  end
  refused = refused or passes == 0
  table.insert(answers, answer)
end

if not (together and refused) then
  for place, key in ipairs(KEYS) do write(key, buckets[place]) end
end
return answers
"""
)

# KEYS: a bucket. ARGV: the time, limit and window, what was spent before, and how many to reserve.
# The answer is how many are reserved, what remains, and after how many milliseconds there will be
# more.
_LEASE = (
    BUCKETS
    + """
local bucket = read(KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]))
add(bucket, tonumber(ARGV[4]))
local granted = math.max(0, math.min(tonumber(ARGV[5]), bucket.limit - bucket.used))
add(bucket, granted)
write(KEYS[1], bucket)
return {granted, math.max(0, bucket.limit - bucket.used), waiting(bucket)}
"""
)


@dataclass(frozen=True, slots=True)
class Bucket:
    """What is counted together: ``limit`` in any ``window`` milliseconds."""

    key: str
    limit: int
    window: int


@dataclass(frozen=True, slots=True)
class Level:
    """How full a bucket is: what ``remains``, and in how many milliseconds there is ``more``."""

    remains: int
    more: int


@dataclass(frozen=True, slots=True)
class Count:
    """Whether a request passes, and the levels of its buckets afterwards, in their order."""

    passes: bool
    levels: tuple[Level, ...]


class Counter:
    """The counts in one Redis. Made once a process; its threads share it."""

    def __init__(self, url: str, *, pause: float = PAUSE, patience: float = PATIENCE) -> None:
        self._pause = pause
        self._redis = lasting(url, patience)
        self._script = self._redis.register_script(_SCRIPT)
        self._lease = self._redis.register_script(_LEASE)
        self._away_until = 0.0
        self._warned_at = -_WARN_EVERY

    def count(
        self,
        requests: Sequence[Sequence[Bucket]],
        *,
        together: bool = False,
        now: float | None = None,
    ) -> list[Count] | None:
        """Decide about requests in their order, each of which needs room in all of its buckets.

        With ``together`` nothing is counted unless all pass. None if Redis doesn't answer.
        """
        if monotonic() < self._away_until:
            return None
        places: dict[Bucket, int] = {}
        for request in requests:
            for bucket in request:
                places.setdefault(bucket, len(places) + 1)
        arguments: list[str | int] = ["" if now is None else int(now * 1000), int(together)]
        for bucket in places:
            arguments += (bucket.limit, bucket.window)
        for request in requests:
            arguments += (len(request), *(places[bucket] for bucket in request))
        try:
            answers = self._script(keys=[bucket.key for bucket in places], args=arguments)
        except (redis.RedisError, OSError) as error:
            self._note_absence(error)
            return None
        return [
            Count(bool(passes), tuple(map(Level, numbers[::2], numbers[1::2])))
            for passes, *numbers in answers
        ]

    def lease(
        self, bucket: Bucket, spent: int, number: int, *, now: float | None = None
    ) -> tuple[int, Level] | None:
        """Count ``spent`` requests that have passed already, and reserve up to ``number`` more.

        Returns how many are reserved, and the bucket's level; None if Redis doesn't answer.
        """
        if monotonic() < self._away_until:
            return None
        when = "" if now is None else int(now * 1000)
        try:
            granted, remains, more = self._lease(
                keys=[bucket.key], args=[when, bucket.limit, bucket.window, spent, number]
            )
        except (redis.RedisError, OSError) as error:
            self._note_absence(error)
            return None
        return granted, Level(remains, more)

    def _note_absence(self, error: Exception) -> None:
        now = monotonic()
        self._away_until = now + self._pause
        if now - self._warned_at >= _WARN_EVERY:
            self._warned_at = now
            log.warning(
                "rate limits are not counted: Redis doesn't answer", error=type(error).__name__
            )
