"""The event channel: every event to every client."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench import accounting
from bench.failure import BenchFailure
from bench.measure import say
from bench.realtime import contenders
from bench.realtime.clients import Received, clients, percentile
from bench.realtime.contenders import Server
from bench.servers import ROOT, Engines, service_environment

MARKER = '"tokenId":'
_WARM = 10
"""Events before those that are counted."""


@dataclass(frozen=True, slots=True)
class Scene:
    """So many clients, and events at a rate; ``at_once`` of them are in one block. ``heavy`` ones
    take minutes with a group layer, and are left to the others."""

    name: str
    clients: int
    rate: float
    at_once: int = 1
    seconds: float | None = None
    heavy: bool = False

    def events(self, seconds: float) -> int:
        return int(self.rate * (self.seconds or seconds)) // self.at_once * self.at_once


SCENES = (
    Scene("500 clients, 20 events/s", 500, 20),
    Scene("1,000 clients, 50 events/s", 1_000, 50),
    Scene("5,000 clients, 50 events/s", 5_000, 50, heavy=True),
    Scene("1,000 clients, a block of 500 events", 1_000, 500, at_once=500, seconds=1, heavy=True),
)


class Teller:
    """The process that stores events (``telling``)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def tell(self, count: int, rate: float, at_once: int = 1) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        job = {"count": count, "rate": rate, "at_once": at_once}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            assert self._process.stderr
            raise BenchFailure(f"events can't be stored: {self._process.stderr.read()[-800:]}")
        told: dict[str, Any] = json.loads(answer)
        return told


@contextlib.contextmanager
def teller(engines: Engines) -> Iterator[Teller]:
    """A chain that is empty, and the process that fills it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.realtime.delivery"],
        cwd=ROOT,
        env=service_environment(engines) | {"PROCESS": "manage", "LOG_LEVEL": "WARNING"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stderr
        if process.stdout.readline().strip() != "ready":
            raise BenchFailure(f"events can't be stored: {process.stderr.read()[-800:]}")
        yield Teller(process)
    finally:
        process.kill()
        process.wait()


def measure(
    engines: Engines, names: Sequence[str], scenes: Sequence[Scene], rounds: int, seconds: float
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Figures of every round, by scene and contender; their order alternates."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for number in range(rounds):
        for scene in scenes:
            for name in names if number % 2 else names[::-1]:
                if scene.heavy and name in ("core", "pubsub"):
                    continue
                one = run(engines, name, scene, seconds)
                found.setdefault(scene.name, {}).setdefault(name, []).append(one)
                say(
                    f"round {number + 1}/{rounds}  {scene.name:37} {name:7}"
                    f" {one['share']:7.1%}  {one['rate']:9,.0f}/s  p50 {one['p50_ms']:8.1f}"
                    f"  p99 {one['p99_ms']:8.1f} ms  cpu {one['server_us']:5.1f} +"
                    f" {one['postgres_us']:4.1f} us  clients {one['clients_core']:.0%} of a core"
                )
    return found


def run(engines: Engines, name: str, scene: Scene, seconds: float) -> dict[str, Any]:
    """One run, of processes that were started for it."""
    with (
        teller(engines) as told,
        contenders.CONTENDERS[name](engines) as server,
        clients(engines.folder, server.port, server.path, scene.clients, MARKER) as crowd,
    ):
        told.tell(_WARM, 20)
        crowd.wait_for(_WARM * scene.clients, server.cpu)
        crowd.clear()
        cpu = Cpu(engines, server)
        events = scene.events(seconds)
        written = told.tell(events, scene.rate, scene.at_once)
        crowd.wait_for(events * scene.clients, server.cpu)
        cost = cpu.since()
        got = crowd.stop(written["first"])
    figures = _figures(got, written, events * scene.clients, cost)
    return figures | {"open_seconds": crowd.open_seconds, "clients": scene.clients}


class Cpu:
    """What a run costs, from when this is made."""

    def __init__(self, engines: Engines, server: Server) -> None:
        self._engines, self._server = engines, server
        self._began = self._now()

    def since(self) -> dict[str, float]:
        """Seconds: of the server, of PostgreSQL, of the process with the sockets, of the clock."""
        return {
            name: now - before
            for (name, now), before in zip(self._now().items(), self._began.values(), strict=True)
        }

    def _now(self) -> dict[str, float]:
        return {
            "server": self._server.cpu(),
            "postgres": accounting.cpu_seconds(self._engines.postgres_pid),
            "sockets": self._server.sockets_cpu(),
            "clock": time.monotonic(),
        }


def _figures(
    got: Received, written: dict[str, Any], expected: int, cost: dict[str, float]
) -> dict[str, Any]:
    first, began = written["first"], written["began"]
    moments = [0] * first + began
    ordered = got.latencies(moments)
    count = max(got.count, 1)
    seconds = (max(got.times) - began[0]) / 1e6 if got.count else cost["clock"]
    return {
        "expected": expected,
        "received": got.count,
        "share": got.count / expected,
        "disorder": got.disorder,
        "lost": got.lost,
        "rate": got.count / seconds,
        "p50_ms": percentile(ordered, 0.5),
        "p99_ms": percentile(ordered, 0.99),
        "most_ms": percentile(ordered, 1.0),
        "stored_ms": written["took_ms"],
        "server_us": cost["server"] / count * 1e6,
        "postgres_us": cost["postgres"] / count * 1e6,
        "clients_core": got.core,
        "clients_us": got.cpu / count * 1e6,
    }
