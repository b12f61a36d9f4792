"""What the start page reads at the moment: queues, processes, sockets, chains, backups, queries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.conf import settings
from django.db.models import Count, F, Max

from backend.endpoints import process_metrics
from backend.kernel.connections.redis import asking_once
from backend.kernel.process import reports
from backend.overview import active_users
from backend.overview.collection import open_sockets, values_of
from backend.overview.durations import span
from backend.overview.reading import LIMIT
from chain.models import Blockchain, Reorganisation
from chain.networks.lag import UNKNOWN, Lag, lags
from objects.core.indexes.shapes import decode
from objects.database.orm import orm_queries
from objects.definitions.models import ObjectClass
from objects.learned.models import QueryShape
from realtime.metrics import metrics as of_sockets

_MOST_PROCESSES: Final = 60
_MOST_NETWORKS: Final = 20
_MOST_SHAPES: Final = 8


@dataclass(frozen=True, slots=True)
class Queue:
    """Tasks that wait; ``seconds`` is how long the next one has, None without one that is due."""

    name: str
    tasks: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Process:
    """A process as the page shows it."""

    role: str
    node: str
    pid: int
    version: str
    started_at: datetime
    cpu: float
    memory: int

    @property
    def cpu_percent(self) -> str:
        """Return the share of a processor that it used lately, as a number of percent."""
        return f"{self.cpu * 100:.0f}"

    @property
    def age(self) -> str:
        """Return since when it has been running."""
        return span((datetime.now(UTC) - self.started_at).total_seconds())


@dataclass(frozen=True, slots=True)
class Moment:
    """What Redis has: queues, processes, sockets, and the users of a range."""

    queues: list[Queue]
    processes: list[Process]
    hidden_processes: int
    sockets: int
    active_users: int


def moment(since: datetime, until: datetime) -> Moment:
    """Return what Redis has. Raises ``RedisError``."""
    with asking_once(settings.REDIS_URL, LIMIT) as client:
        length, age = process_metrics.of_queues(client)
        ages = values_of(age)
        stored = reports.read(client)
        users = active_users.number(client, since, until)
    queues = [Queue(name, int(tasks), ages.get(name)) for name, tasks in values_of(length).items()]
    processes = [
        Process(
            report.role,
            report.node,
            report.pid,
            report.version,
            datetime.fromtimestamp(report.started_at, UTC),
            report.cpu,
            report.memory,
        )
        for report in stored
    ]
    return Moment(
        queues,
        processes[:_MOST_PROCESSES],
        max(0, len(processes) - _MOST_PROCESSES),
        int(open_sockets(of_sockets())),
        users,
    )


def database_queues() -> list[Queue]:
    """Return what waits in the database: deliveries of webhooks, and pushes."""
    queues = []
    for name, read in (
        ("webhooks", process_metrics.of_deliveries),
        ("pushes", process_metrics.of_pushes),
    ):
        number, age = (sum(sample.value for sample in metric.samples) for metric in read())
        queues.append(Queue(name, int(number), age if number else None))
    return queues


@dataclass(frozen=True, slots=True)
class Network:
    """A network, its lag, and its reorganisations in the range."""

    name: str
    is_active: bool
    lag: Lag
    reorganisations: int
    deepest: int


def networks(since: datetime) -> list[Network]:
    """Return the networks of the chain app; empty until one is added."""
    with orm_queries():
        blockchains = Blockchain.objects.filter(network_id__isnull=False)
        rows = [*blockchains.order_by("network_id")[:_MOST_NETWORKS]]
        lag_by_network = lags() if rows else {}
        reorganisations = (
            Reorganisation.objects.filter(seen_at__gte=since)
            .values("network_id")
            .annotate(number=Count("pk"), deepest=Max("depth"))
        )
        by_network = {row["network_id"]: row for row in reorganisations} if rows else {}
    listed = []
    for network in rows:
        counts = by_network.get(network.network_id, {"number": 0, "deepest": 0})
        lag = lag_by_network.get(network.network_id or 0, UNKNOWN)
        listed.append(
            Network(str(network), network.active, lag, counts["number"], counts["deepest"] or 0)
        )
    return listed


@dataclass(frozen=True, slots=True)
class SlowQuery:
    """A shape of queries that took longer than ``SLOW_QUERY``, and how often."""

    class_name: str
    shape: str
    calls: int
    seconds: float


def slow_queries(since: datetime) -> list[SlowQuery]:
    """Return the shapes of slow queries of the range, the costliest first."""
    with orm_queries():
        rows = [
            *QueryShape.objects.filter(slow_at__gte=since, slow_calls__gt=0).order_by(
                F("slow_seconds").desc()
            )[:_MOST_SHAPES]
        ]
        names = dict(
            ObjectClass.objects.filter(pk__in={row.class_id for row in rows}).values_list(
                "pk", "name"
            )
        )
    return [
        SlowQuery(
            names[row.class_id],
            str(shape),
            row.slow_calls,
            row.slow_seconds / row.slow_calls,
        )
        for row in rows
        if row.class_id in names and (shape := decode(row.shape)) is not None
    ]
