"""The processes of this instance, with their heartbeats and restarts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from time import time

import redis
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from backend.kernel.connections.redis import asking_once
from backend.kernel.process import heartbeats, restart_report
from backend.kernel.process.restart_report import Restarted
from backend.site.model_admin import BannerLevel, banner, page, render
from objects.admin.operations.log_pages import VIEW

_PATIENCE = 2.0  # seconds
_WORKERS = (
    heartbeats.WORKER,
    heartbeats.JOBS,
    heartbeats.CHAIN,
    heartbeats.BACKFILL,
    heartbeats.BEAT,
    heartbeats.REALTIME,
)


@dataclass(frozen=True)
class Row:
    """A role or program, with the seconds since its last heartbeat, if it has heartbeats."""

    name: str
    silence: float | None
    leaves_signs: bool
    restarted: Restarted | None
    last_time: datetime | None


@banner
def failing_banner(request: HttpRequest) -> tuple[BannerLevel, str] | None:
    """Return the banner that names processes which restart repeatedly."""
    failing = [
        restart
        for restart in restart_report.read(settings.DATA_FOLDER.reports)
        if restart.is_failing
    ]
    if not failing:
        return None
    names = ", ".join(f"{restart.name} ({restart.last_end})" for restart in failing)
    return "error", f"These processes end again and again: {names}."


@page(
    "processes/",
    name="processes",
    permission=VIEW,
    title="Processes",
    section="Operations",
    icon="memory",
    position=15,
)
@require_safe
def processes(request: HttpRequest) -> HttpResponseBase:
    """Show each role and engine, with its last heartbeat and its restarts."""
    restarted = {
        restart.name: restart for restart in restart_report.read(settings.DATA_FOLDER.reports)
    }
    complaint = ""
    silences: dict[str, float | None] = dict.fromkeys(_WORKERS)
    try:
        with asking_once(settings.REDIS_URL, _PATIENCE) as client:
            for name in _WORKERS:
                last = heartbeats.latest(client, name)
                silences[name] = None if last is None else max(0.0, time() - last)
    except redis.RedisError:
        complaint = "Redis, which stores the heartbeats, doesn't answer."
    names = [*_WORKERS, *sorted(restarted.keys() - set(_WORKERS))]
    rows = [_row(name, silences.get(name), restarted.get(name)) for name in names]
    return render(
        request, "admin/operations/processes.html", "Processes", rows=rows, complaint=complaint
    )


def _row(name: str, silence: float | None, restarted: Restarted | None) -> Row:
    last = None if restarted is None else datetime.fromtimestamp(restarted.last_time, UTC)
    return Row(name, silence, name in _WORKERS, restarted, last)
