"""``script/bench --peer --delivered``: the service as its users meet it, beside Parse Server.

``script/server`` with its default settings, through its public port: rate limits count (above the
load), and all its other processes run as well. Parse Server is met directly, which favours it. Both
have as many web processes, and the same PostgreSQL.

Everything is measured at 16 connections; then p99 again at 64 and 256, and with slow clients, one
for each hundred connections. A query without an index is measured twice: where the service learns
no index, and after a minute in which it may have learned one.

``script/bench --chart RESULTS.json`` draws the ratios of kept results for the documentation.
"""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bench import chart, data, report, servers
from bench.measure import Figures, Options, Run, figures, load, measure, say
from bench.servers import ROOT, Engines, Target
from bench.slow_clients import slow_clients
from bench.workloads import WORKLOADS, Loaded, Workload

GOALS: Final[dict[str, float]] = {
    "get": 3,
    "find": 2.5,
    "find-cold": 2,
    "find-unindexed": 20,
    "newest": 3,
    "include": 2.5,
    "create": 2.5,
    "update": 2.5,
    "function": 2,
    "trigger": 2,
    "batch": 5,
}
"""Throughput that is aimed at, in multiples of Parse Server's."""
CHART: Final = ROOT / "docs" / "images" / "ratios.svg"
CONNECTIONS: Final = (64, 256)
FIRST: Final = "first"
SLOW: Final = "slow"
SCENES: Final = (FIRST, *map(str, CONNECTIONS), SLOW)
_SLOW_AT: Final = 100
"""Connections of the run with slow clients: one of a hundred is slow."""
_FEWER_ROUNDS: Final = 3
_LEARNING: Final = 60
"""Seconds of use before a query without an index is measured."""
_UNINDEXED: Final = "find-unindexed"
_COLD: Final = "find-cold"
Targets = Sequence[tuple[Target, Loaded]]


def compare(
    engines: Engines,
    workers: int,
    objects: int,
    workloads: Sequence[Workload],
    options: Options,
    wanted: Container[str] = SCENES,
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The tables in markdown, all runs, and the conditions. ``wanted`` are the scenes measured."""
    compared = [workload for workload in workloads if workload.name in GOALS]
    unindexed = [workload for workload in compared if workload.name == _UNINDEXED]
    cold: list[Run] = []
    with servers.peer(engines, workers) as peer:
        theirs = (peer, load(peer, engines, objects))
        with servers.delivered(engines, workers, AUTO_INDEX="off") as first:
            loaded = load(first, engines, objects)
            if unindexed and FIRST in wanted:
                say("without learned indexes")
                runs = measure(engines, [(first, loaded), theirs], unindexed, options)
                cold = [replace(run, workload=_COLD) for run in runs]
        with servers.delivered(engines, workers) as ours:
            facts = report.conditions(engines, [ours, peer], options)
            targets = [(ours, loaded), theirs]
            if unindexed:
                say(f"{_LEARNING} s of use")
                use = replace(options, rounds=1, seconds=_LEARNING)
                measure(engines, targets[:1], unindexed, use)
            scenes = _scenes(engines, targets, compared, options, wanted)
    if FIRST in wanted:
        scenes[FIRST].extend(cold)
    contents = {name: [run.as_dict() for run in runs] for name, runs in scenes.items()}
    return tables(scenes, compared, options), {"delivered": contents}, facts


def _scenes(
    engines: Engines,
    targets: Targets,
    workloads: Sequence[Workload],
    options: Options,
    wanted: Container[str],
) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {}
    for scene in SCENES:
        if scene not in wanted:
            continue
        scene_options = _options(scene, options)
        say(_title(scene, options))
        with _slow(targets) if scene == SLOW else contextlib.nullcontext():
            runs[scene] = measure(engines, targets, workloads, scene_options)
    return runs


def _options(scene: str, options: Options) -> Options:
    if scene == FIRST:
        return options
    connections = _SLOW_AT if scene == SLOW else int(scene)
    return replace(options, rounds=min(options.rounds, _FEWER_ROUNDS), connections=connections)


def _title(scene: str, options: Options) -> str:
    if scene == SLOW:
        return "1 % slow clients"
    return f"{_options(scene, options).connections} connections"


def tables(scenes: dict[str, list[Run]], workloads: Sequence[Workload], options: Options) -> str:
    """Throughput in the first scene, if it was measured, and p99 in all of them."""
    parts = [latencies(scenes, workloads, options)]
    if FIRST in scenes:
        parts.insert(0, throughput(scenes[FIRST], workloads))
    return "\n\n".join(parts)


@contextlib.contextmanager
def _slow(targets: Targets) -> Iterator[None]:
    places = [
        (target.port, f"{target.mount}/classes/{data.WRITTEN}", target.headers)
        for target, _ in targets
    ]
    with slow_clients(1, *places):
        yield


@dataclass(frozen=True, slots=True)
class Row:
    """A workload in the tables."""

    name: str
    title: str

    @property
    def goal(self) -> float:
        return GOALS[self.name]


def rows(workloads: Sequence[Workload]) -> list[Row]:
    """The rows of the tables; a query without an index has two."""
    found = []
    for workload in workloads:
        if workload.name == _UNINDEXED:
            found.append(Row(_COLD, "range + order without an index, cold"))
            found.append(Row(_UNINDEXED, "the same after a minute of use"))
        else:
            found.append(Row(workload.name, workload.title))
    return found


def draw(kept: Path) -> str:
    """The chart of kept results: the ratio of throughput in each row, and what is aimed at."""
    contents = json.loads(kept.read_text())["delivered"]
    found: dict[tuple[str, str], list[float]] = {}
    for run in contents[FIRST]:
        rate = run["requests"] / run["seconds"]
        found.setdefault((run["workload"], run["target"]), []).append(rate)
    rates = {key: statistics.median(values) for key, values in found.items()}
    bars = {
        row.title: (rates[row.name, "ours"] / rates[row.name, "peer"], row.goal)
        for row in rows(WORKLOADS)
        if (row.name, "ours") in rates
    }
    return chart.bars("Requests per second, in multiples of Parse Server's", bars)


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
    for row in rows(workloads):
        ours, theirs = (_of(runs, row, name) for name in ("ours", "peer"))
        ratio = ours.rate / theirs.rate
        lines.append(
            report.line(
                row.title,
                *(f"{ours.rate:,.0f}", f"{ours.server_cpu:,.0f} + {ours.postgres_cpu:,.0f}"),
                *(f"{theirs.rate:,.0f}", f"{theirs.server_cpu:,.0f} + {theirs.postgres_cpu:,.0f}"),
                *(f"**{ratio:.2f}**", f"{row.goal:g}", "met" if ratio >= row.goal else "missed"),
            )
        )
    return "\n".join(lines)


def latencies(scenes: dict[str, list[Run]], workloads: Sequence[Workload], options: Options) -> str:
    """p99 in milliseconds of both in each scene; what isn't below Parse Server's is bold."""
    lines = [
        report.line(
            "p99 ms: this service, Parse Server", *(_title(scene, options) for scene in scenes)
        ),
        report.ruler(1 + len(scenes)),
    ]
    for row in rows(workloads):
        cells = []
        for runs in scenes.values():
            if not any(run.workload == row.name for run in runs):
                cells.append("")
                continue
            ours, theirs = (_of(runs, row, name).p99_ms for name in ("ours", "peer"))
            text = f"{ours:,.1f}, {theirs:,.1f}"
            cells.append(text if ours < theirs else f"**{text}**")
        lines.append(report.line(row.title, *cells))
    return "\n".join(lines)


def _of(runs: Sequence[Run], row: Row, target: str) -> Figures:
    return figures([run for run in runs if (run.workload, run.target) == (row.name, target)])
