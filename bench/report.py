"""Figures as a table in markdown, and all that was measured as JSON."""

from __future__ import annotations

import datetime as dt
import json
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.accounting import machine
from bench.measure import Figures, Options, Run, figures
from bench.servers import PROXIED, Engines, Target
from bench.workloads import Workload

RESULTS = Path(__file__).parent / "results"


def surroundings(engines: Engines) -> dict[str, Any]:
    """When, of which commit and on what machine figures are."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=RESULTS.parent,
        capture_output=True,
        text=True,
    ).stdout.strip()
    return {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit or "unknown",
        "machine": machine(),
        "PostgreSQL": engines.version,
    }


def heading_of_one(facts: Mapping[str, Any]) -> str:
    """Under what conditions figures of one service were measured; ``versions`` and ``rounds`` are
    among them."""
    found = facts["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return (
        f"{facts['date']}, commit {facts['commit']}. {found['cpu']}, {found['memory']}, "
        f"{found['system']}, load before {found['load']}. PostgreSQL {facts['PostgreSQL']} with "
        f"default durability. {versions}. Medians of {facts['rounds']}."
    )


def conditions(engines: Engines, targets: Sequence[Target], options: Options) -> dict[str, Any]:
    """What somebody needs to know to repeat the figures."""
    return surroundings(engines) | {
        "servers": {target.title: dict(target.versions) for target in targets},
        "load": f"{options.generator}, {options.connections} connections, keep-alive",
        "rounds": f"{options.rounds} rounds of {options.seconds} s, medians",
    }


def tables(runs: Sequence[Run], workloads: Sequence[Workload], names: Sequence[str]) -> str:
    """The servers side by side, then each one beside itself behind the proxy."""
    bare = [name for name in names if not name.endswith(PROXIED)]
    behind = [name for name in names if name.endswith(PROXIED)]
    pairs = [bare, *([name, name.removesuffix(PROXIED)] for name in behind)]
    return "\n\n".join(table(runs, workloads, pair) for pair in pairs)


def table(runs: Sequence[Run], workloads: Sequence[Workload], names: Sequence[str]) -> str:
    """One line a workload; with two servers, the first one's gain over the second."""
    head = ["workload"]
    for name in names:
        head += [f"{name}: requests/s", "p50 ms", "p99 ms", "CPU µs server + PostgreSQL"]
    if len(names) == 2:
        head += ["throughput ratio", "p99 ratio", "CPU ratio"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for workload in workloads:
        found = [_figures(runs, workload.name, name) for name in names]
        line = [workload.title]
        for one in found:
            line += [
                f"{one.rate:,.0f}",
                f"{one.p50_ms:.1f}",
                f"{one.p99_ms:.1f}",
                f"{one.server_cpu:,.0f} + {one.postgres_cpu:,.0f}",
            ]
        if len(found) == 2:
            first, second = found
            cpu = (second.server_cpu + second.postgres_cpu) / (
                first.server_cpu + first.postgres_cpu
            )
            line += [
                f"**{first.rate / second.rate:.2f}**",
                f"{first.p99_ms / second.p99_ms:.2f}",
                f"{cpu:.2f}",
            ]
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def line(*cells: object) -> str:
    """A line of a table in markdown."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def ruler(columns: int) -> str:
    """The line below its heading: the first column is text, the others are figures."""
    return line("---", *["---:"] * (columns - 1))


def middle(runs: Sequence[Mapping[str, Any]], name: str) -> float:
    """The median of a figure over rounds."""
    return statistics.median(run[name] for run in runs)


def _figures(runs: Sequence[Run], workload: str, target: str) -> Figures:
    return figures([run for run in runs if run.workload == workload and run.target == target])


def heading(facts: dict[str, Any]) -> str:
    found = facts["machine"]
    servers = "; ".join(
        f"{title} ({', '.join(f'{name} {version}' for name, version in versions.items())})"
        for title, versions in facts["servers"].items()
    )
    return (
        f"{facts['date']}, commit {facts['commit']}. {found['cpu']}, "
        f"{found['memory']}, {found['system']}, load before {found['load']}. "
        f"PostgreSQL {facts['PostgreSQL']} with default durability. {servers}. "
        f"{facts['load']}; {facts['rounds']}."
    )


def keep(facts: dict[str, Any], **contents: Any) -> Path:
    """Write everything to a new file below bench/results."""
    RESULTS.mkdir(exist_ok=True)
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    path = RESULTS / f"{stamp}.json"
    path.write_text(json.dumps({"conditions": facts, **contents}, indent=1) + "\n")
    return path
