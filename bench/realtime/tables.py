"""The figures as tables in markdown, beside what the sockets are to reach."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from bench.realtime.contenders import NAMES
from bench.report import line, middle, ruler, surroundings
from bench.servers import HERE, Engines, python_versions

Runs = Sequence[dict[str, Any]]
_SIDES = {"ours": "this service", "peer": "Parse Server"}


def conditions(engines: Engines, rounds: int, seconds: float, *, alone: bool) -> dict[str, Any]:
    """The environment that is needed to repeat the figures."""
    packages = ("uvicorn", "uvloop", "channels", "channels-redis")
    there = [name for name in packages if importlib.util.find_spec(name.replace("-", "_"))]
    versions = python_versions(*there)
    if not alone:
        node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
        versions["Node.js"] = node.stdout.strip().lstrip("v")
        for name in ("ws", "pg", "parse-server"):
            package = HERE / "node_modules" / name / "package.json"
            versions[name] = str(json.loads(package.read_text())["version"])
    return surroundings(engines) | {
        "versions": versions,
        "rounds": f"{rounds} rounds of {seconds:g} s",
    }


def text(figures: Mapping[str, Any]) -> str:
    """All tables of what was measured."""
    return "\n\n".join(_TABLES[part](results) for part, results in figures.items())


def _fanout(results: Mapping[str, Mapping[str, Runs]]) -> str:
    lines = [
        line(
            *("event channel", "server", "delivered", "frames/s", "p50 ms", "p99 ms"),
            *("CPU µs a frame, server + PostgreSQL", "the clients' share of a core"),
        ),
        ruler(8),
    ]
    goals = []
    for scene, sides in results.items():
        for name, runs in sides.items():
            cost = f"{middle(runs, 'server_us'):.1f} + {middle(runs, 'postgres_us'):.1f}"
            lines.append(
                line(
                    scene,
                    NAMES[name],
                    f"{middle(runs, 'share'):.1%}",
                    f"{middle(runs, 'rate'):,.0f}",
                    f"{middle(runs, 'p50_ms'):,.1f}",
                    f"{middle(runs, 'p99_ms'):,.1f}",
                    cost,
                    f"{middle(runs, 'clients_core'):.0%}",
                )
            )
        if "ours" in sides:
            goals.append(_against(scene, sides))
    return "\n".join([*lines, "", *goals])


def _against(scene: str, sides: Mapping[str, Runs]) -> str:
    rates = {name: middle(runs, "rate") for name, runs in sides.items()}
    others = ", ".join(
        f"{rates['ours'] / rate:.1f} times {NAMES[name]}"
        for name, rate in rates.items()
        if name != "ours" and rate
    )
    sequence = sum(run["disorder"] for run in sides["ours"])
    return (
        f"- {scene}: {others or 'alone'} in frames/s; {sequence} frames twice or out of order."
        " G4: 10 times channels_redis, all delivered; G5: p99 below 250 ms for 500 clients, 500 ms"
        " for 1,000."
    )


def _held(results: Mapping[str, Runs]) -> str:
    lines = [
        line(
            *("connections", "held", "open after s", "KiB each: process", "kernel, both ends"),
            *("MiB of the process", "idle: share of a core", "heard", "the last after ms"),
        ),
        ruler(9),
    ]
    for name, runs in results.items():
        lines.append(
            line(
                name,
                f"{runs[0]['connections']:,}",
                f"{middle(runs, 'open_seconds'):.1f}",
                f"{middle(runs, 'kib'):.1f}",
                f"{middle(runs, 'kernel_kib'):.1f}",
                f"{middle(runs, 'mib'):,.0f}",
                f"{middle(runs, 'idle_core'):.1%}",
                f"{middle(runs, 'share'):.1%}",
                f"{middle(runs, 'most_ms'):,.0f}",
            )
        )
    return "\n".join(lines)


def _livequery(results: Mapping[str, Mapping[str, Runs]]) -> str:
    lines = [
        line(
            *("live queries", "writes", "server", "writes/s", "delivered", "p50 ms", "p99 ms"),
            *("a CPU second of the sockets' process", "a CPU second of all", "ratio", "of all"),
        ),
        ruler(11),
    ]
    for scene, sides in results.items():
        for pace, title in (("paced", "20 a second"), ("burst", "at full speed")):
            flat = {name: [run[pace] for run in runs] for name, runs in sides.items()}
            for name, runs in flat.items():
                ratios = [
                    f"**{middle(runs, per) / middle(flat['peer'], per):.1f}**"
                    if name == "ours" and "peer" in flat
                    else ""
                    for per in ("per_sockets_cpu_s", "per_cpu_s")
                ]
                lines.append(
                    line(
                        *(scene, title, _SIDES[name], f"{middle(runs, 'writes_rate'):,.0f}"),
                        f"{middle(runs, 'share'):.1%}",
                        f"{middle(runs, 'p50_ms'):,.1f}",
                        f"{middle(runs, 'p99_ms'):,.1f}",
                        f"{middle(runs, 'per_sockets_cpu_s'):,.0f}",
                        f"{middle(runs, 'per_cpu_s'):,.0f}",
                        *ratios,
                    )
                )
    return "\n".join([*lines, "", "To reach: 3 times the peer's deliveries a CPU second."])


def _capture(results: Mapping[str, Mapping[str, Runs]]) -> str:
    lines = [
        line(
            *("writes over REST", "mode", "requests/s", "p99 ms"),
            *("CPU µs server + PostgreSQL", "sockets' process µs", "of the first's rate"),
        ),
        ruler(7),
    ]
    for workload, modes in results.items():
        first = middle(next(iter(modes.values())), "rate")
        for mode, runs in modes.items():
            lines.append(
                line(
                    workload,
                    mode,
                    f"{middle(runs, 'rate'):,.0f}",
                    f"{middle(runs, 'p99_ms'):,.1f}",
                    f"{middle(runs, 'rest_us'):,.0f} + {middle(runs, 'postgres_us'):,.0f}",
                    f"{middle(runs, 'sockets_us'):,.0f}",
                    f"{middle(runs, 'rate') / first:.0%}",
                )
            )
    return "\n".join(lines)


def _churn(results: Mapping[str, Runs]) -> str:
    lines = [
        line(
            *("connections", "came and went", "queries", "s", "delivered"),
            *("MiB after ten groups", "half way", "most", "in the end"),
        ),
        ruler(9),
    ]
    for name, (run,) in results.items():
        lines.append(
            line(
                *(name, f"{run['connections']:,}", f"{run['queries']:,}", f"{run['seconds']:.0f}"),
                f"{run['share']:.1%}",
                *(f"{run[when]:.1f}" for when in ("warm_mib", "half_mib", "most_mib", "mib")),
            )
        )
    return "\n".join(lines)


_TABLES: dict[str, Any] = {
    "fanout": _fanout,
    "held": _held,
    "livequery": _livequery,
    "capture": _capture,
    "churn": _churn,
}
