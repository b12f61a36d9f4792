"""The whole service at half of its peak rate for half an hour: does it hold more and more?

    script/bench soak [--minutes 30] [--profile default]

Clients of REST and functions make as many requests as they can for a while; then half as many a
second, for the time that is measured, beside sockets that come and go, log-ins, uploads, and a
contract whose events come all the time. What is stored stays as much as it is, but for events.

Each minute: PSS of every process (MiB; a page that processes share counts in parts), open files,
connections of PostgreSQL, keys and memory of Redis. What is flat has in its last third at most 5 %
(and 5, of what it is) more than in its second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil
import psycopg
import redis

from backend.limit_rules import DEFAULTS, MOST
from bench import report
from bench.client import Client
from bench.failure import BenchFailure
from bench.soak.clients import Miner, Rest, Sockets
from bench.whole import (
    MASTER_KEY,
    Whole,
    facts,
    master_headers,
    megabytes,
    started,
    temporary,
    title,
)
from tests.evm.artefacts import Contract
from tests.evm.node import running_node

_CHAIN: Final = 7160
_PROCESSES, _THREADS = 2, 8  # of the clients
_SOCKETS: Final = 60
_WARM_UP: Final = 10.0  # seconds
_PEAK: Final = 20.0  # seconds
_EACH: Final = 60.0  # seconds between two looks
_SLACK, _SLACK_OF_ANYTHING = 1.05, 5.0
_NO_LIMITS: Final = json.dumps([{**rule, "count": MOST} for rule in DEFAULTS])

Sample = dict[str, float]


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="script/bench soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=int, default=30, help="that are measured (%(default)s)")
    parser.add_argument("--profile", choices=("default", "small"), default="default")
    options = parser.parse_args(given)
    if options.minutes < 6:
        raise BenchFailure("Less than six minutes say nothing.")
    settings = {
        "PROFILE": options.profile,
        "CLOUD_MODULES": "bench.cloud",
        "RATE_LIMITS": _NO_LIMITS,
        "WS_MAX_PER_ADDRESS": 0,
    }
    with (
        temporary() as folder,
        running_node(_CHAIN, "--gas-limit", "3000000000") as node,
        started(folder, **settings) as whole,
    ):
        gem = node.deployed("Gem")
        headers = master_headers(folder)
        _follow(whole, headers, gem)
        peak, samples = _run(whole, headers, gem, options.minutes)
    text, is_flat = _table(samples)
    kept = report.keep(facts(), soak={"peak": peak, "samples": samples})
    print(f"peak {peak:,.0f} requests/s; then half of it\n\n{text}")
    print(f"all figures: {kept}", file=sys.stderr)
    if not is_flat:
        sys.exit("script/bench: something isn't flat")


def _follow(whole: Whole, headers: dict[str, str], contract: Contract) -> None:
    network = contract.node.chain_id
    registered = {
        "name": "Gem",
        "address": contract.address,
        "networkId": network,
        "abi": contract.abi,
        "startBlock": 0,
    }
    with Client(whole.port, "/api", headers) as client:
        client.send(
            "POST",
            "/classes/Blockchain",
            {"networkId": network, "rpcEndpoint": contract.node.url},
        )
        client.send("POST", "/classes/SmartContract", registered)


def _run(
    whole: Whole, headers: dict[str, str], contract: Contract, minutes: int
) -> tuple[float, list[Sample]]:
    keys = {
        "applicationId": headers["X-Svc-Application-Id"],
        "masterKey": headers[MASTER_KEY],
    }
    rest = Rest(whole.port, headers, _PROCESSES, _THREADS)
    rest.start()
    sockets, miner = Sockets(whole.port, keys, _SOCKETS), Miner(contract)
    with contextlib.ExitStack() as stack:
        stack.callback(rest.stop)
        for each in (sockets, miner):
            each.start()
            stack.callback(each.stop)
        time.sleep(_WARM_UP)
        before = rest.count()[0]
        time.sleep(_PEAK)
        peak = (rest.count()[0] - before) / _PEAK
        rest.limit(peak / 2)
        print(f"peak {peak:,.0f} requests/s; {minutes} minutes at half of it", file=sys.stderr)
        samples = []
        done, failed, _ = rest.count()
        for _ in range(minutes):
            time.sleep(_EACH)
            now, now_failed, slowest = rest.count()
            sample = _look(whole) | {
                "requests/s": (now - done) / _EACH,
                "failed requests": float(now_failed - failed),
                "slowest request, ms": slowest * 1000,
                "messages to sockets": float(sockets.messages),
            }
            done, failed = now, now_failed
            samples.append(sample)
            print(f"{len(samples)}: {_short(sample)}", file=sys.stderr)
    return peak, samples


def _short(sample: Sample) -> str:
    shown = ("PSS, all", "open files, all", "requests/s", "failed requests")
    return ", ".join(f"{name} {sample[name]:,.0f}" for name in shown)


def _look(whole: Whole) -> Sample:
    """What everything holds at this moment."""
    processes = whole.processes()
    sizes = megabytes(processes)
    found: Sample = {f"PSS, {name}": size for name, (_, size) in sizes.items()}
    files: dict[str, int] = defaultdict(int)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            files[title(process)] += process.num_fds()
    found |= {f"open files, {name}": float(number) for name, number in files.items()}
    found["PSS, all"] = sum(size for _, size in sizes.values())
    found["open files, all"] = float(sum(files.values()))
    found["processes"] = float(len(processes))
    with psycopg.connect(whole.folder.database_url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        ).fetchone()
        found["connections of PostgreSQL"] = float(row[0] - 1) if row else 0.0
    with redis.Redis.from_url(whole.folder.redis_url) as client:
        found["keys of Redis"] = float(client.dbsize())
        found["memory of Redis, MiB"] = client.info("memory")["used_memory"] / 2**20
    found["append-only file of Redis, MiB"] = _size(whole.folder.redis) / 2**20
    return found


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


_NOT_HELD: Final = ("requests/s", "failed requests", "slowest request, ms", "messages to sockets")


def _table(samples: list[Sample]) -> tuple[str, bool]:
    """The thirds side by side, and whether all that is held is flat."""
    third = len(samples) // 3
    parts = [samples[:third], samples[third : 2 * third], samples[2 * third :]]
    names = [*dict.fromkeys(name for sample in samples for name in sample)]
    heads = ("first third", "second", "last", "flat")
    lines = [report.line("medians", *heads), report.ruler(len(heads) + 1)]
    is_flat = True
    for name in names:
        first, second, last = (
            statistics.median(sample.get(name, 0.0) for sample in part) for part in parts
        )
        flat = "" if name in _NOT_HELD else "yes"
        if flat and last > second * _SLACK and last > second + _SLACK_OF_ANYTHING:
            flat, is_flat = "no", False
        lines.append(report.line(name, *(f"{value:,.0f}" for value in (first, second, last)), flat))
    return "\n".join(lines), is_flat
