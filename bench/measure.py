"""Rounds of every workload on every server, turn and turn about."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import accounting, data, generator
from bench.client import create_all
from bench.failure import BenchFailure
from bench.servers import Engines, Target, prepare
from bench.workloads import Loaded, Workload


@dataclass(frozen=True, slots=True)
class Options:
    rounds: int
    seconds: int
    connections: int
    generator: str


@dataclass(frozen=True, slots=True)
class Run:
    """One round of one workload on one server; CPU times in microseconds a request."""

    workload: str
    target: str
    load: generator.Load
    server_cpu: float
    postgres_cpu: float

    def as_dict(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "target": self.target,
            "server_cpu_us": self.server_cpu,
            "postgres_cpu_us": self.postgres_cpu,
            **self.load.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class Figures:
    """The medians of the rounds."""

    rate: float
    p50_ms: float
    p99_ms: float
    server_cpu: float
    postgres_cpu: float


def figures(runs: Sequence[Run]) -> Figures:
    def middle(values: list[float]) -> float:
        return statistics.median(values)

    return Figures(
        middle([run.load.rate for run in runs]),
        middle([run.load.p50_ms for run in runs]),
        middle([run.load.p99_ms for run in runs]),
        middle([run.server_cpu for run in runs]),
        middle([run.postgres_cpu for run in runs]),
    )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def load(target: Target, engines: Engines, objects: int) -> Loaded:
    """Fill the server through REST, then let it prepare for reading."""
    say(f"{target.name}: loading {objects} objects through REST")
    prepare(target)
    owner_ids = create_all(target.client, data.OWNER, map(data.owner, range(data.OWNERS)))
    everything = (data.an_object(number, objects, owner_ids) for number in range(objects))
    ids = create_all(target.client, data.MAIN, everything)
    with target.client() as client:
        stored = client.send("GET", f"/classes/{data.MAIN}?limit=0&count=1")["count"]
    if stored != objects:
        raise BenchFailure(f"{target.name} has {stored} objects after loading {objects}")
    target.tune(engines)
    return Loaded(objects, ids, owner_ids)


def measure(
    engines: Engines,
    targets: Sequence[tuple[Target, Loaded]],
    workloads: Sequence[Workload],
    options: Options,
) -> list[Run]:
    """Every round asks every server everything; the order of the servers changes by round."""
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="svc-bench-requests-") as folder:
        files = {
            (workload.name, target.name): write_requests(Path(folder), workload, target, loaded)
            for workload in workloads
            for target, loaded in targets
        }
        for number in range(options.rounds + 1):
            # The first round only warms up.
            seconds = options.seconds if number else 1
            ordered = targets if number % 2 else targets[::-1]
            for workload in workloads:
                for target, _ in ordered:
                    run = run_once(
                        engines,
                        target,
                        workload,
                        files[workload.name, target.name],
                        options,
                        seconds,
                        is_warm_up=not number,
                    )
                    if number:
                        runs.append(run)
                        say(
                            f"round {number}/{options.rounds}  {workload.name:15} {target.name:12} "
                            f"{run.load.rate:8.0f}/s  p99 {run.load.p99_ms:7.1f} ms  "
                            f"cpu {run.server_cpu:5.0f} + {run.postgres_cpu:5.0f} us"
                        )
    return runs


def write_requests(folder: Path, workload: Workload, target: Target, loaded: Loaded) -> Path:
    """The file of requests, after one of them was answered as it should be."""
    path = folder / f"{workload.name}-{target.name}.requests"
    with path.open("w") as file:
        for request in workload.requests(target.mount, loaded):
            file.write(request.line())
    check(workload, target, loaded)
    return path


def check(workload: Workload, target: Target, loaded: Loaded) -> None:
    request = next(iter(workload.requests(target.mount, loaded)))
    with target.client() as client:
        path = request.path.removeprefix(target.mount)
        answer = client.send(request.method, path, request.body or None)
    if not workload.check(answer):
        raise BenchFailure(f"{target.name} answers {workload.name!r} wrongly: {str(answer)[:400]}")


def run_once(
    engines: Engines,
    target: Target,
    workload: Workload,
    requests: Path,
    options: Options,
    seconds: int,
    *,
    is_warm_up: bool = False,
) -> Run:
    server, postgres = _cpu(*target.pids), _cpu(engines.postgres_pid)
    seen = generator.run(
        options.generator, target.port, target.headers, requests, options.connections, seconds
    )
    server = _cpu(*target.pids) - server
    postgres = _cpu(engines.postgres_pid) - postgres
    # A second is too short for the first answer of some workloads at 256 connections.
    requests_seen = max(seen.requests, 1) if is_warm_up else seen.requests
    if seen.failed or not requests_seen:
        raise BenchFailure(
            f"{target.name} failed {seen.failed} of {seen.requests} requests of {workload.name!r}"
        )
    return Run(
        workload.name,
        target.name,
        seen,
        server / requests_seen * 1e6,
        postgres / requests_seen * 1e6,
    )


def _cpu(*pids: int) -> float:
    return sum(accounting.cpu_seconds(pid) for pid in pids)
