"""How many different users have sent requests, estimated within a percent.

Web processes add users to one HyperLogLog for each hour in Redis. ``store`` writes those of this
hour and the last one to the database, and restores what Redis has lost.
"""

from __future__ import annotations

from datetime import UTC, datetime

import redis

from backend.kernel import request_counts
from backend.kernel.request_counts import HOUR
from backend.overview.models import UserSketch
from backend.overview.storage import HOUR as ONE_HOUR
from backend.overview.storage import STORED


def number(client: redis.Redis, since: datetime, until: datetime) -> int:
    """Return the number of users in the hours that begin from ``since`` to ``until``. Raises
    ``RedisError``."""
    first, last = (int(moment.timestamp()) // HOUR for moment in (since, until))
    return int(client.pfcount(*map(request_counts.users_key, range(first, last + 1))))


def store(client: redis.Redis, now: datetime) -> None:
    """Write the sketches of this hour and the last one, and restore missing ones in Redis. Raises
    ``RedisError``."""
    this_hour = datetime.fromtimestamp(now.timestamp() // HOUR * HOUR, UTC)
    _restore(client, now)
    for hour in (this_hour - ONE_HOUR, this_hour):
        sketch = client.get(_key(hour))
        if isinstance(sketch, bytes):
            UserSketch.objects.update_or_create(hour=hour, defaults={"sketch": sketch})


def _restore(client: redis.Redis, now: datetime) -> None:
    """Merge what the database has into what Redis has, for hours that Redis has less of."""
    hours = [*UserSketch.objects.filter(hour__gte=now - STORED).values_list("hour", flat=True)]
    if not hours:
        return
    with client.pipeline(transaction=False) as pipeline:
        for hour in hours:
            pipeline.exists(_key(hour))
        is_there = dict(zip(hours, pipeline.execute(), strict=True))
    recent = now - 2 * ONE_HOUR
    lost = [hour for hour in hours if not is_there[hour] or hour > recent]
    for hour, sketch in UserSketch.objects.filter(hour__in=lost).values_list("hour", "sketch"):
        key = _key(hour)
        seconds = max(1, int((hour + STORED - now).total_seconds()))
        with client.pipeline(transaction=True) as pipeline:
            pipeline.set(f"{key}:stored", bytes(sketch), ex=60)
            pipeline.pfmerge(key, f"{key}:stored")
            pipeline.expire(key, seconds)
            pipeline.execute()


def _key(hour: datetime) -> str:
    return request_counts.users_key(int(hour.timestamp()) // HOUR)
