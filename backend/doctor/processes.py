"""Workers and beat, by their signs of life."""

from __future__ import annotations

from collections.abc import Iterator
from time import time

import redis
from django.conf import settings

from backend import heartbeats
from backend.doctor.registry import Finding, check, fail, ok, warn

_SILENCE = {  # seconds
    heartbeats.WORKER: 20,
    heartbeats.JOBS: 20,
    heartbeats.CHAIN: 20,
    heartbeats.BACKFILL: 20,
    heartbeats.BEAT: 60,
}
_WAITS = {
    heartbeats.JOBS: ("The worker for jobs", "jobs wait"),
    heartbeats.CHAIN: ("The chain's worker", "transactions and events wait"),
    heartbeats.BACKFILL: ("The worker for backfills", "events of the past wait"),
}
_QUEUED = 1000


@check("processes", needs=("redis",))
def processes() -> Iterator[Finding]:
    """Whether the workers and beat run, and the queue is worked off."""
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=3) as client:
        seen = {which: heartbeats.latest(client, which) for which in _SILENCE}
        queued: int = client.llen(f"celery:{settings.CELERY_TASK_DEFAULT_QUEUE}")
    found = False
    for which, silence in _SILENCE.items():
        last = seen[which]
        if last is not None and time() - last <= silence:
            continue
        found = True
        heard = "not heard from" if last is None else f"silent for {time() - last:.0f} seconds"
        if which == heartbeats.WORKER:
            yield fail(
                f"The worker is {heard}: mail, webhooks and schedules wait.",
                "Start it (python -m backend.serve worker), or look at its log.",
            )
        elif which in _WAITS:
            name, waiting = _WAITS[which]
            yield warn(
                f"{name} is {heard}: {waiting}.",
                f"Start it (python -m backend.serve {which}), or look at its log.",
            )
        else:
            yield warn(
                f"Beat is {heard}: schedules don't run.",
                "Start it (python -m backend.serve beat), once in the whole deployment.",
            )
    if queued > _QUEUED:
        found = True
        yield warn(f"{queued:,} tasks are queued.", "Start more workers, or look at their log.")
    if not found:
        yield ok("the workers (default, jobs, chain, backfill) and beat are alive")
