"""Where contenders perform: the service's database with one network and one contract, emptied, and
what their work has cost."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import urllib3

from bench import accounting

TABLES = (
    "chain_contract_event",
    "chain_outbox",
    "chain_block",
    "chain_backfill",
    "chain_recheck",
    "chain_coverage",
    "chain_cursor",
    "chain_transaction",
    "chain_smart_contract",
    "chain_provider",
    "chain_blockchain",
)


@dataclass(frozen=True)
class Job:
    """What a contender is told."""

    way: str
    url: str
    chain_id: int
    address: str
    abi: list[dict[str, Any]]
    first: int
    last: int
    events: int
    postgres_pid: int
    socket_url: str | None = None
    poll: int = 2_000
    """Milliseconds between two looks at the chain."""
    verify: str = "sample"
    percent: int = 5
    """How much of what the node says is checked (``chain.indexing.verification``)."""


@dataclass
class Cost:
    """Of a piece of work: seconds, processor time of this process and of PostgreSQL, requests to
    the node."""

    seconds: float = 0.0
    own_cpu: float = 0.0
    postgres_cpu: float = 0.0
    requests: int = 0
    more: dict[str, Any] = field(default_factory=dict)

    def figures(self, count: int) -> dict[str, Any]:
        """By the piece, for so many of them."""
        return {
            "count": count,
            "seconds": self.seconds,
            "rate": count / self.seconds,
            "own_cpu_us": self.own_cpu / count * 1e6,
            "postgres_cpu_us": self.postgres_cpu / count * 1e6,
            "requests": self.requests,
            "peak_mb": peak_mb(),
            **self.more,
        }


_requests = 0


@contextmanager
def measured(job: Job, cost: Cost | None = None) -> Iterator[Cost]:
    """Add what the block costs to ``cost``."""
    cost = cost or Cost()
    asked = _requests
    postgres = accounting.cpu_seconds(job.postgres_pid)
    own = time.process_time()
    began = time.perf_counter()
    yield cost
    cost.seconds += time.perf_counter() - began
    cost.own_cpu += time.process_time() - own
    cost.postgres_cpu += accounting.cpu_seconds(job.postgres_pid) - postgres
    cost.requests += _requests - asked


def peak_mb() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def begin() -> None:
    """Set Django up, and count requests from now on."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings.django")
    django.setup()
    import chain.indexing.head
    import chain.indexing.history.backfill  # noqa: F401
    from backend.celery import freeze_loaded_objects

    freeze_loaded_objects()  # as in a worker
    original = urllib3.HTTPConnectionPool.urlopen

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _requests
        _requests += 1
        return original(self, *args, **kwargs)

    urllib3.HTTPConnectionPool.urlopen = counted  # type: ignore[method-assign]


def empty() -> None:
    """Take everything of earlier rounds away."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(TABLES)}")
        cursor.execute("VACUUM ANALYZE chain_contract_event")
        cursor.execute("CHECKPOINT")


def register(job: Job) -> None:
    """Make the network, as an operator would."""
    from django.conf import settings
    from django.test.utils import override_settings

    override_settings(SERVICE={**settings.SERVICE, "VERIFY_PERCENT": job.percent}).enable()
    from backend.kernel.principal import MASTER
    from objects import service

    network = {"networkId": job.chain_id, "name": "Bench", "rpcEndpoint": job.url}
    if job.socket_url:
        network["wssEndpoint"] = job.socket_url
    service.create(MASTER, "Blockchain", network)
    from chain.models import Blockchain

    Blockchain.objects.update(poll_interval=job.poll, verify=job.verify)


def listen(job: Job) -> None:
    """Register the contract."""
    from backend.kernel.principal import MASTER
    from objects import service

    contract = {
        "name": "Gem",
        "address": job.address,
        "networkId": job.chain_id,
        "abi": job.abi,
        "startBlock": 0,
    }
    service.create(MASTER, "SmartContract", contract)


def stored() -> int:
    """How many events are stored."""
    from chain.models import ContractEvent

    return ContractEvent.objects.count()
