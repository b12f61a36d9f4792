"""The command: chains filled, contenders in rounds, tables."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bench import report, servers
from bench.chain import latency, ponder_runs, tables
from bench.chain.filling import CHAIN_ID, EVENTS_A_BLOCK, Filled, filled
from bench.chain.stage import Job
from bench.failure import BenchFailure
from bench.measure import say
from bench.servers import ROOT, Engines

PARTS = ("rates", "stages", "decoding", "pending", "catching_up", "verifying", "latency", "memory")
_SMALL = 10_000
_LARGE = 5
"""How many times as many events the second chain of the part ``memory`` has."""


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/bench chain",
        description="Measure the chain app beside web3.py, the ORM, PostgreSQL alone and Ponder.",
    )
    parser.add_argument("--events", type=int, default=100_000, help="on the chain (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds (%(default)s)")
    parser.add_argument("--ponder", action="store_true", help="measure Ponder as well, from npm")
    parser.add_argument("--blocks", type=int, default=100, help="for latencies (%(default)s)")
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="this part; may be repeated: %(choices)s"
    )
    parsed = parser.parse_args(given)
    if parsed.events < EVENTS_A_BLOCK or parsed.events % EVENTS_A_BLOCK:
        parser.error(f"--events must be a multiple of {EVENTS_A_BLOCK}")
    return parsed


def main(given: Sequence[str]) -> None:
    options = arguments(given)
    wanted = options.only or PARTS
    if options.ponder:
        ponder_runs.install()
    with contextlib.ExitStack() as stack:
        engines = stack.enter_context(servers.engines())
        servers.migrate(engines)
        facts = tables.conditions(engines, options.rounds, with_ponder=options.ponder)
        figures: dict[str, Any] = {}
        for part in PARTS:
            if part in wanted:
                figures[part] = _PART[part](engines, options)
        kept = report.keep(facts, chain=figures)
    print(f"{report.heading_of_one(facts)}\n\n{tables.text(figures)}")
    say(f"all figures: {kept.relative_to(ROOT)}")


def _rates(engines: Engines, options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    ways = ["ours", "again", "wall", "bulk", "each"]
    with filled(options.events) as chain:
        for number in range(options.rounds):
            for way in ways if number % 2 else ways[::-1]:
                say(f"round {number + 1}: {way}")
                found.setdefault(way, []).append(_within(engines, chain, way))
            if options.ponder:
                say(f"round {number + 1}: Ponder")
                for name, one in ponder_runs.measure(engines, chain, number).items():
                    found.setdefault(f"ponder_{name}", []).append(one)
    return found


def _stages(engines: Engines, options: argparse.Namespace) -> list[dict[str, Any]]:
    with filled(options.events) as chain:
        return _rounds("stages", engines, chain, options.rounds)


def _decoding(engines: Engines, options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for name in ("static", "dynamic"):
        with filled(_SMALL, dynamic=name == "dynamic") as chain:
            found[name] = _rounds("decoders", engines, chain, options.rounds)
    return found


def _pending(engines: Engines, options: argparse.Namespace) -> list[dict[str, Any]]:
    with filled(EVENTS_A_BLOCK) as chain:
        return _rounds("pending", engines, chain, options.rounds)


def _catching_up(engines: Engines, options: argparse.Namespace) -> list[dict[str, Any]]:
    with filled(EVENTS_A_BLOCK) as chain:
        return _rounds("catching_up", engines, chain, options.rounds)


def _verifying(engines: Engines, options: argparse.Namespace) -> dict[str, Any]:
    """A backfill and blocks at the head, by how much is checked."""
    found: dict[str, Any] = {}
    schemes = {
        "sample of 0 %": {"percent": 0},
        "sample of 5 %": {},
        "sample of 100 %": {"percent": 100},
        "all": {"verify": "all"},
    }
    for way, events in (("ours", options.events), ("heads", EVENTS_A_BLOCK)):
        with filled(events) as chain:
            for number in range(options.rounds):
                for name in [*schemes][:: 1 if number % 2 else -1]:
                    say(f"round {number + 1}: {way}, {name}")
                    figures = _within(engines, chain, way, **schemes[name])
                    found.setdefault(name, {}).setdefault(way, []).append(figures)
    return {name: found[name] for name in schemes}


def _latency(engines: Engines, options: argparse.Namespace) -> dict[str, Any]:
    found = {}
    with filled(EVENTS_A_BLOCK) as chain:
        for name, socket_url, poll in (
            ("woken by a socket", chain.node.socket_url, 2_000),
            ("polling alone", None, 2_000),
        ):
            say(f"latency: {name}")
            _within(engines, chain, "prepare", socket_url=socket_url, poll=poll)
            found[name] = latency.measure(engines, chain.gem, options.blocks, poll)
    return found


def _memory(engines: Engines, options: argparse.Namespace) -> dict[str, Any]:
    found = {}
    for events in (options.events, options.events * _LARGE):
        with filled(events) as chain:
            say(f"memory: {events} events")
            found[str(events)] = _within(engines, chain, "ours")
    return found


_PART: dict[str, Callable[[Engines, argparse.Namespace], Any]] = {
    "rates": _rates,
    "stages": _stages,
    "decoding": _decoding,
    "pending": _pending,
    "catching_up": _catching_up,
    "verifying": _verifying,
    "latency": _latency,
    "memory": _memory,
}


def _rounds(way: str, engines: Engines, chain: Filled, rounds: int) -> list[dict[str, Any]]:
    found = []
    for number in range(rounds):
        say(f"round {number + 1}: {way}")
        found.append(_within(engines, chain, way))
    return found


def _within(engines: Engines, chain: Filled, way: str, **more: Any) -> dict[str, Any]:
    """The figures of a contender that runs in a process of its own."""
    job = Job(
        way=way,
        url=chain.node.url,
        chain_id=CHAIN_ID,
        address=chain.gem.address,
        abi=chain.gem.abi,
        first=chain.first,
        last=chain.last,
        events=chain.events,
        postgres_pid=engines.postgres_pid,
        **more,
    )
    done = subprocess.run(
        [sys.executable, "-m", "bench.chain.within"],
        cwd=ROOT,
        env=servers.service_environment(engines) | {"PROCESS": "manage", "LOG_LEVEL": "WARNING"},
        input=json.dumps(dataclasses.asdict(job)),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise BenchFailure(f"{way}: {done.stderr.strip()[-1500:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))
