"""The figures as tables in markdown, beside what the app is to reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.chain import ponder_runs
from bench.report import line, middle, ruler, surroundings
from bench.servers import Engines, python_versions

_NAMES = {
    "ours": "this service: backfill",
    "again": "the same blocks once more",
    "wall": "PostgreSQL alone: ready rows, COPY, ON CONFLICT",
    "bulk": "web3.py, bulk_create(ignore_conflicts)",
    "each": "web3.py, get_or_create",
    "ponder_cold": "Ponder, cold",
    "ponder_cached": "Ponder, with its cache",
}

Runs = Sequence[dict[str, Any]]


def conditions(engines: Engines, rounds: int, *, with_ponder: bool) -> dict[str, Any]:
    """What somebody needs to know to repeat the figures."""
    versions = python_versions("web3", "eth-abi")
    if with_ponder:
        versions["Ponder"] = ponder_runs.version()
    return surroundings(engines) | {
        "versions": {**versions, "anvil": _anvil()},
        "rounds": f"{rounds} rounds",
    }


def text(figures: dict[str, Any]) -> str:
    """All tables of what was measured."""
    return "\n\n".join(_TABLES[part](found) for part, found in figures.items())


def _rates(found: dict[str, Runs]) -> str:
    usual = middle(found["bulk"], "rate")
    lines = [
        line(
            "way", "events", "events/s", "CPU µs own + PostgreSQL", "requests", "peak MB", "ratio"
        ),
        ruler(7),
    ]
    for way in _NAMES:
        if way in found:
            runs = found[way]
            cpu = " + ".join(
                f"{middle(runs, name):,.0f}" for name in ("own_cpu_us", "postgres_cpu_us")
            )
            lines.append(
                line(
                    _NAMES[way],
                    f"{runs[0]['count']:,}",
                    f"{middle(runs, 'rate'):,.0f}",
                    cpu,
                    runs[0].get("requests", ""),
                    f"{middle(runs, 'peak_mb'):,.0f}",
                    f"{middle(runs, 'rate') / usual:.1f}",
                )
            )
    ours, wall = middle(found["ours"], "rate"), middle(found["wall"], "rate")
    goals = [
        f"G1: {ours / usual:.1f} times the ORM's way (20), {ours / wall:.0%} of PostgreSQL alone"
        " (80 %)"
    ]
    if "ponder_cold" in found:
        cold, cached = (middle(found[f"ponder_{one}"], "rate") for one in ("cold", "cached"))
        start = middle(found["ponder_cold"], "start_seconds")
        goals.append(
            f"G9: {ours / cold:.1f} times Ponder cold (5), {ours / cached:.1f} times with its cache"
            f" (1.5); its start of {start:.1f} s isn't counted"
        )
    return "\n".join([*lines, "", *goals])


def _stages(runs: Runs) -> str:
    lines = [line("stage", "events/s", "CPU µs own + PostgreSQL", "requests"), ruler(4)]
    for stage in ("asking", "decoding", "inserting"):
        its = [run[stage] for run in runs]
        lines.append(
            line(
                stage,
                f"{middle(its, 'rate'):,.0f}",
                f"{middle(its, 'own_cpu_us'):,.1f} + {middle(its, 'postgres_cpu_us'):,.1f}",
                its[0]["requests"],
            )
        )
    return "\n".join(lines)


def _decoding(found: dict[str, Runs]) -> str:
    lines = [line("decoding", "ours: logs/s", "web3's process_log", "ratio", "goal"), ruler(5)]
    for name, goal in (("static", "G2: 100"), ("dynamic", "G2b: 5")):
        ours = middle([run["ours"] for run in found[name]], "rate")
        web3 = middle([run["web3"] for run in found[name]], "rate")
        lines.append(line(name, f"{ours:,.0f}", f"{web3:,.0f}", f"{ours / web3:.1f}", goal))
    return "\n".join(lines)


def _pending(runs: Runs) -> str:
    return "\n".join(
        [
            line("10,000 pending transactions", "ms", "requests", "goal"),
            ruler(4),
            line(
                "a block that holds one of them" if runs[0]["in_block"] == 1 else "a block",
                f"{middle(runs, 'block_ms'):.1f}",
                runs[0]["block_requests"],
                "G3: 50 ms, 2 requests",
            ),
            line(
                "all due at once",
                f"{middle(runs, 'due_seconds') * 1000:,.0f}",
                runs[0]["due_requests"],
                "G3b: 500 ms",
            ),
            line(
                "web3.py, one by one", f"{middle(runs, 'web3_seconds') * 1000:,.0f}", "10,000", ""
            ),
        ]
    )


def _catching_up(runs: Runs) -> str:
    lines = [line("step", "ms", "requests"), ruler(3)]
    for name in runs[0]:
        its = [run[name] for run in runs]
        kind, _, count = name.rpartition("_")
        title = f"{count} new blocks" if kind == "catch_up" else f"reorganisation of {count} blocks"
        lines.append(line(title, f"{middle(its, 'ms'):.1f}", its[0]["requests"]))
    return "\n".join(
        [*lines, "", "G7: at most 3 requests to find where chains part, for 64 blocks"]
    )


def _verifying(found: dict[str, dict[str, Runs]]) -> str:
    lines = [
        line("verify", "backfill: events/s", "requests", "of the rate of a sample of 0 %"),
        ruler(4),
    ]
    least = middle(next(iter(found.values()))["ours"], "rate")
    for name, ways in found.items():
        rate = middle(ways["ours"], "rate")
        requests = middle(ways["ours"], "requests")
        lines.append(line(name, f"{rate:,.0f}", f"{requests:,.0f}", f"{rate / least:.2f}"))
    lines += ["", line("verify", "a block with events", "an empty block"), ruler(3)]
    for name, ways in found.items():
        cells = []
        for kind in ("with_events", "empty"):
            runs = [run[kind] for run in ways["heads"]]
            cells.append(
                f"{middle(runs, 'requests'):.2f} requests, {middle(runs, 'ms'):.1f} ms,"
                f" {middle(runs, 'cpu_ms'):.1f} ms CPU"
            )
        lines.append(line(name, *cells))
    return "\n".join(lines)


def _latency(found: dict[str, dict[str, Any]]) -> str:
    lines = [
        line("transaction to stored event", "blocks", "poll ms", "p50 ms", "p99 ms", "most ms"),
        ruler(6),
    ]
    for name, one in found.items():
        times = [f"{one[key]:,.1f}" for key in ("p50_ms", "p99_ms", "most_ms")]
        lines.append(line(name, one["blocks"], one["poll_ms"], *times))
    return "\n".join([*lines, "", "G6: p50 below 20 ms when woken, below the interval else"])


def _memory(found: dict[str, dict[str, Any]]) -> str:
    lines = [line("events in one backfill", "peak MB", "events/s"), ruler(3)]
    for events, one in found.items():
        lines.append(line(f"{int(events):,}", f"{one['peak_mb']:,.0f}", f"{one['rate']:,.0f}"))
    return "\n".join(lines)


_TABLES: dict[str, Any] = {
    "rates": _rates,
    "stages": _stages,
    "decoding": _decoding,
    "pending": _pending,
    "catching_up": _catching_up,
    "verifying": _verifying,
    "latency": _latency,
    "memory": _memory,
}


def _anvil() -> str:
    import json
    from pathlib import Path

    from tests.evm.node import FOLDER

    wanted = json.loads((Path(FOLDER) / "package.json").read_text())["optionalDependencies"]
    return str(next(iter(wanted.values())))
