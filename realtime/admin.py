"""The admin's page of the live channel: the last events, connections and lags."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import time
from typing import Any, Final

import msgspec
import redis
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from backend.logs.setup import get_logger
from backend.site.model_admin import page, render
from chain.indexing.storage import outbox_reader
from chain.models import OutboxEntry
from realtime.core.events import Details, Event
from realtime.process import reports

_VIEW: Final = "chain.view_contractevent"
_SHOWN: Final = 25  # events

log = get_logger("admin")


@dataclass(slots=True)
class Lag:
    """How far a network's events have been sent, by the process that is furthest behind."""

    network: str
    newest: int
    sent: int | None = None
    by_process: list[tuple[str, int]] = field(default_factory=list)

    @property
    def behind(self) -> int | None:
        """Return how many rows are still to be sent; None if no process sends any."""
        return None if self.sent is None else max(0, self.newest - self.sent)


@dataclass(frozen=True, slots=True)
class SentEvent:
    """A row of the outbox, as the page shows it."""

    entry: OutboxEntry
    details: Details

    @property
    def arguments(self) -> str:
        """As JSON."""
        return "" if self.details.args is None else msgspec.json.encode(self.details.args).decode()


@page(
    "live/",
    name="live",
    permission=_VIEW,
    title="Live channel",
    section="Chain",
    icon="bolt",
    position=15,
)
@require_safe
def live(request: HttpRequest) -> HttpResponseBase:
    """The last events, each network's lag, and each realtime process with its connections."""
    trouble = None
    processes: list[dict[str, Any]] = []
    try:
        processes = reports.processes()
    except (redis.RedisError, OSError) as error:
        log.warning("no reports of realtime processes", error=type(error).__name__)
        trouble = "Redis doesn't answer, so nothing is known of the processes."
    return render(
        request,
        "admin/realtime/live.html",
        "Live channel",
        processes=[_process(process) for process in processes],
        networks=lags(outbox_reader.state(), processes),
        events=_newest(),
        trouble=trouble,
        shown=_SHOWN,
    )


def lags(state: outbox_reader.State, processes: Iterable[dict[str, Any]]) -> list[Lag]:
    """Return each network's lag. Only processes with connections to ``/ws`` send events."""
    by_network = {
        str(network_id): Lag(str(network_id), reach.newest)
        for network_id, reach in state.networks.items()
    }
    for process in processes:
        networks = process["parts"].get("events", {}).get("networks", {})
        for network, figures in networks.items():
            lag = by_network.get(network)
            if lag is not None:
                sent = int(figures["told"])
                lag.sent = sent if lag.sent is None else min(lag.sent, sent)
                behind = max(0, lag.newest - sent)
                lag.by_process.append((f"{process['host']}:{process['pid']}", behind))
    return [by_network[network] for network in sorted(by_network, key=int)]


def _newest() -> list[SentEvent]:
    entries = OutboxEntry.objects.order_by("-created_at", "-network_id", "-seq")[:_SHOWN]
    return [
        SentEvent(entry, Event(entry.network_id, entry.seq, entry.op, entry.payload).details)
        for entry in entries
    ]


def _process(status: dict[str, Any]) -> dict[str, Any]:
    """Return a report with the figures that the page computes."""
    parts = status["parts"]
    return status | {
        "age": max(0.0, time() - status["at"]),
        "running": max(0.0, time() - status["startedAt"]),
        "total": sum(status["connections"].values()),
        "refusals": sum(status["refused"].values()),
        "slow": status["closed"].get("1013", 0),
        "events": parts.get("events"),
        "livequery": parts.get("livequery"),
    }
