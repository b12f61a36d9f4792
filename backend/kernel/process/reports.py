"""Reports of processes in Redis: what each runs and uses, for the start page of the admin.

Each process replaces its report every few seconds, and one that ends or hangs has none soon after.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import Final

import msgspec
import redis
from django.conf import settings

from backend import __version__
from backend.kernel.connections.redis import lasting

_INDEX: Final = "processes"
EXPIRY: Final = 30  # seconds
INTERVAL: Final = 5.0  # seconds
_TIMEOUT: Final = 2.0  # seconds
MOST: Final = 500
"""Reports that are read."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Report(msgspec.Struct, frozen=True):
    """What a process reports of itself and its children.

    ``cpu`` is the share of a processor since the former report; times are seconds since the epoch;
    ``memory`` and the disk of the data folder are bytes.
    """

    role: str
    node: str
    pid: int
    version: str
    started_at: float
    at: float
    cpu: float
    memory: int
    disk_used: int
    disk_total: int


class _Reporter:
    """Sends the reports of this process. One thread at a time uses it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.started_at = time()
        self._last_at, self._last_cpu = monotonic(), self._usage()[0]

    def report(self) -> Report:
        cpu, memory = self._usage()
        now = monotonic()
        used = max(0.0, cpu - self._last_cpu) / max(now - self._last_at, 1.0)
        self._last_at, self._last_cpu = now, cpu
        disk_used, disk_total = _disk()
        return Report(
            role=settings.PROCESS,
            node=socket.gethostname(),
            pid=self.pid,
            version=__version__,
            started_at=self.started_at,
            at=time(),
            cpu=used,
            memory=memory,
            disk_used=disk_used,
            disk_total=disk_total,
        )

    def _usage(self) -> tuple[float, int]:
        usage = [_usage(pid) for pid in (self.pid, *_children(self.pid))]
        return sum(seconds for seconds, _ in usage), sum(memory for _, memory in usage)


_reporter: _Reporter | None = None


def send(client: redis.Redis) -> None:
    """Replace the report of this process. Raises ``RedisError``."""
    global _reporter
    if _reporter is None or _reporter.pid != os.getpid():
        _reporter = _Reporter()
    report = _reporter.report()
    name = f"{report.node}:{report.pid}"
    with client.pipeline(transaction=False) as pipeline:
        pipeline.set(f"process:{name}", msgspec.json.encode(report), ex=EXPIRY)
        pipeline.zadd(_INDEX, {name: report.at})
        pipeline.zremrangebyscore(_INDEX, 0, report.at - 10 * EXPIRY)
        pipeline.execute()


def start(then: Callable[[], None] = lambda: None) -> None:
    """Send reports in a thread of this process until it ends, and call ``then`` after each."""

    def run() -> None:
        pause = threading.Event()
        with lasting(settings.REDIS_URL, _TIMEOUT) as client:
            while True:
                # Redis may be away, and no other error may end the reports of a process.
                for work in (partial(send, client), then):
                    with contextlib.suppress(Exception):
                        work()
                pause.wait(INTERVAL)

    threading.Thread(target=run, name="reports", daemon=True).start()


def read(client: redis.Redis) -> list[Report]:
    """Return the latest reports, by node and role. Raises ``RedisError``."""
    names: list[bytes] = client.zrevrange(_INDEX, 0, MOST - 1)  # type: ignore[assignment]
    stored: list[bytes | None] = (
        client.mget([b"process:" + name for name in names]) if names else []  # type: ignore[assignment]
    )
    reports: list[Report] = []
    for text in stored:
        # A process of another release may report otherwise.
        with contextlib.suppress(msgspec.DecodeError):
            if text is not None:
                reports.append(msgspec.json.decode(text, type=Report))
    return sorted(reports, key=lambda report: (report.node, report.role, report.pid))


def _usage(pid: int) -> tuple[float, int]:
    """Return the seconds of CPU and the bytes of memory of a process; zeros if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0
    return (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def _disk() -> tuple[int, int]:
    try:
        usage = shutil.disk_usage(settings.DATA_FOLDER.path)
    except OSError:
        return 0, 0
    return usage.total - usage.free, usage.total
