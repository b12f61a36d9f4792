"""``script/bench --peer --delivered``: the service as its users meet it, beside Parse Server.

``script/server`` with its default settings, through its public port: rate limits count (above the
load), and all its other processes run as well. Parse Server is met directly, which favours it. Both
have as many web processes, and the same PostgreSQL.

Everything is measured at 16 connections; then p99 again at 64 and 256, and with slow clients, one
for each hundred connections.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from bench import data, report
from bench.measure import Figures, Options, Run, figures, measure, say
from bench.servers import Engines, Target
from bench.slow_clients import slow_clients
from bench.workloads import Loaded, Workload

GOALS: Final[dict[str, float]] = {
    "get": 3,
    "find": 2.5,
    "find-unindexed": 2,
    "newest": 3,
    "include": 2.5,
    "create": 2.5,
    "update": 2.5,
    "function": 2,
    "trigger": 2,
    "batch": 5,
}
"""Throughput that is aimed at, in multiples of Parse Server's."""
CONNECTIONS: Final = (64, 256)
_SLOW_AT: Final = 100
"""Connections of the run with slow clients: one of a hundred is slow."""
_FEWER_ROUNDS: Final = 3


def run(
    engines: Engines,
    targets: Sequence[tuple[Target, Loaded]],
    workloads: Sequence[Workload],
    options: Options,
) -> tuple[str, dict[str, Any]]:
    """The tables in markdown, and all runs."""
    compared = [workload for workload in workloads if workload.name in GOALS]
    scenes: dict[str, list[Run]] = {
        f"{options.connections} connections": measure(engines, targets, compared, options)
    }
    fewer = replace(options, rounds=min(options.rounds, _FEWER_ROUNDS))
    for connections in CONNECTIONS:
        say(f"{connections} connections")
        scenes[f"{connections} connections"] = measure(
            engines, targets, compared, replace(fewer, connections=connections)
        )
    say("slow clients")
    with _slow(targets):
        scenes["1 % slow clients"] = measure(
            engines, targets, compared, replace(fewer, connections=_SLOW_AT)
        )
    first = next(iter(scenes.values()))
    text = f"{throughput(first, compared)}\n\n{latencies(scenes, compared)}"
    return text, {
        "delivered": {name: [one.as_dict() for one in runs] for name, runs in scenes.items()}
    }


@contextlib.contextmanager
def _slow(targets: Sequence[tuple[Target, Loaded]]) -> Iterator[None]:
    places = [
        (target.port, f"{target.mount}/classes/{data.WRITTEN}", target.headers)
        for target, _ in targets
    ]
    with slow_clients(1, *places):
        yield


def throughput(runs: Sequence[Run], workloads: Sequence[Workload]) -> str:
    """Requests per second of both, their ratio, and whether it is the one that is aimed at."""
    lines = [
        report.line(
            "workload",
            *("this service: requests/s", "CPU µs server + PostgreSQL"),
            *("Parse Server: requests/s", "CPU µs server + PostgreSQL"),
            *("ratio", "aim", "verdict"),
        ),
        report.ruler(8),
    ]
    for workload in workloads:
        ours, theirs = (_of(runs, workload, name) for name in ("ours", "peer"))
        ratio, goal = ours.rate / theirs.rate, GOALS[workload.name]
        lines.append(
            report.line(
                workload.title,
                *(f"{ours.rate:,.0f}", f"{ours.server_cpu:,.0f} + {ours.postgres_cpu:,.0f}"),
                *(f"{theirs.rate:,.0f}", f"{theirs.server_cpu:,.0f} + {theirs.postgres_cpu:,.0f}"),
                *(f"**{ratio:.2f}**", f"{goal:g}", "met" if ratio >= goal else "missed"),
            )
        )
    return "\n".join(lines)


def latencies(scenes: dict[str, list[Run]], workloads: Sequence[Workload]) -> str:
    """p99 in milliseconds of both in each scene; what isn't below Parse Server's is bold."""
    lines = [
        report.line("p99 ms: this service, Parse Server", *scenes),
        report.ruler(1 + len(scenes)),
    ]
    for workload in workloads:
        cells = []
        for runs in scenes.values():
            ours, theirs = (_of(runs, workload, name).p99_ms for name in ("ours", "peer"))
            text = f"{ours:,.1f}, {theirs:,.1f}"
            cells.append(text if ours < theirs else f"**{text}**")
        lines.append(report.line(workload.title, *cells))
    return "\n".join(lines)


def _of(runs: Sequence[Run], workload: Workload, target: str) -> Figures:
    return figures([one for one in runs if (one.workload, one.target) == (workload.name, target)])
