"""Workers and beat, by their heartbeats."""

from __future__ import annotations

from collections.abc import Iterator
from time import time

import redis
from django.conf import settings

from backend.kernel.doctor import Finding, check, fail, ok, warn
from backend.kernel.process import heartbeats, restart_report
from backend.tasks import overflow

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


_HOUR = 3600.0


@check("restarts")
def restarts() -> Iterator[Finding]:
    """Which processes ``script/server`` has restarted, and whether it runs."""
    folder = settings.DATA_FOLDER.reports
    is_embedded = settings.EMBEDDED_POSTGRES or settings.EMBEDDED_REDIS
    if is_embedded and settings.DATA_FOLDER.running() is None:
        yield fail(
            f"script/server isn't running with DATA_DIR={settings.DATA_FOLDER.path}.",
            "Start it, or set DATABASE_URL and REDIS_URL to other servers.",
        )
        return
    if not folder.is_dir():
        yield ok("something else than script/server restarts the processes here")
        return
    restarted = restart_report.read(folder)
    for restart in restarted:
        minutes = (time() - restart.last_time) / 60
        often = "once" if restart.restarts == 1 else f"{restart.restarts} times"
        text = f"{restart.name} was restarted {often}, the last time {minutes:.0f} minutes ago"
        advice = f"Look at its log; its last end: {restart.last_end}."
        if restart.is_failing:
            yield fail(f"{restart.name} fails again and again ({restart.last_end}).", advice)
        elif time() - restart.last_time < _HOUR:
            yield warn(f"{text}.", advice)
    if not any(restart.is_failing or time() - restart.last_time < _HOUR for restart in restarted):
        yield ok("no process was restarted within the last hour")


@check("processes", needs=("redis",))
def processes() -> Iterator[Finding]:
    """Whether the workers and beat run, and the queue is worked off."""
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=3) as client:
        heartbeat = {which: heartbeats.latest(client, which) for which in _SILENCE}
        queued: int = client.llen(f"celery:{settings.CELERY_TASK_DEFAULT_QUEUE}")
        queued += overflow.length(client)
    has_problem = False
    for which, silence in _SILENCE.items():
        last = heartbeat[which]
        if last is not None and time() - last <= silence:
            continue
        has_problem = True
        silent = "not heard from" if last is None else f"silent for {time() - last:.0f} seconds"
        if which == heartbeats.WORKER:
            yield fail(
                f"The worker is {silent}: mail, webhooks and schedules wait.",
                "Start it (python -m backend.serve worker), or look at its log.",
            )
        elif which in _WAITS:
            name, waiting = _WAITS[which]
            yield warn(
                f"{name} is {silent}: {waiting}.",
                f"Start it (python -m backend.serve {which}), or look at its log.",
            )
        else:
            yield warn(
                f"Beat is {silent}: schedules don't run.",
                "Start it (python -m backend.serve beat), once in the whole deployment.",
            )
    if queued > _QUEUED:
        has_problem = True
        yield warn(f"{queued:,} tasks are queued.", "Start more workers, or look at their log.")
    if not has_problem:
        yield ok("the workers (default, jobs, chain, backfill) and beat are alive")
