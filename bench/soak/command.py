"""The whole service at half of its peak rate for half an hour: does it hold more and more?

    script/bench soak [--minutes 30] [--profile default]

Clients of REST and functions make as many requests as they can for a while; then half as many a
second, for the time that is measured, beside sockets that come and go, log-ins, uploads, triggers
in the background, and a contract whose events come all the time. What is stored stays as much as it
is, but for events.

Every --interval seconds: anonymous memory and PSS of every role (MiB), open files, connections of
PostgreSQL and Redis, keys and memory of Redis, objects whose trigger waits for a worker.

The soak fails if a request or a socket fails, if a process is restarted, if the rate is less than
95 % of what it should be, or if something grows. Below the table it says by what rule.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import stat
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
import redis

from backend.settings.rate_limits import DEFAULTS, MOST
from bench import report
from bench.client import Client
from bench.failure import BenchFailure
from bench.soak import growth
from bench.soak.clients import WATCHED, Miner, Rest, Sockets
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
_LEAST_SAMPLES: Final = 6
_NO_LIMITS: Final = json.dumps([{**rule, "count": MOST} for rule in DEFAULTS])
_RESTART: Final = "a process ended and is restarted"

Sample = dict[str, float]


@dataclass(slots=True)
class Result:
    """What a soak has measured. ``peak`` is in requests a second; ``failures`` and
    ``failed_sockets`` count from the first request on, the peak included."""

    peak: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    failures: int = 0
    failed_sockets: int = 0


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="script/bench soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=30, help="that are measured (%(default)s)")
    parser.add_argument(
        "--interval", type=float, default=60, help="seconds between two samples (%(default)s)"
    )
    parser.add_argument("--profile", choices=("default", "small"), default="default")
    options = parser.parse_args(given)
    if options.interval <= 0:
        raise BenchFailure("--interval must be more than 0.")
    count = round(options.minutes * 60 / options.interval)
    if count < _LEAST_SAMPLES:
        raise BenchFailure(f"{count} samples are too few: make it {_LEAST_SAMPLES} or more.")
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
        result = Result()
        try:
            _run(whole, headers, gem, count, options.interval, result)
        finally:  # also what was measured until a client ended
            kept = report.keep(facts(), soak={"peak": result.peak, "samples": result.samples})
        restarts = whole.log.read_text().count(_RESTART)
    print(f"peak {result.peak:,.0f} requests/s; then half of it\n\n{growth.table(result.samples)}")
    print(f"all figures: {kept}", file=sys.stderr)
    problems = growth.problems(
        result.samples, result.peak / 2, result.failures, result.failed_sockets, restarts
    )
    if problems:
        raise BenchFailure(f"the soak fails: {'; '.join(problems)}.")


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
    whole: Whole,
    headers: dict[str, str],
    contract: Contract,
    count: int,
    interval: float,
    result: Result,
) -> None:
    """Measure, and fill ``result``. Raises ``BenchFailure`` if a client ends."""
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
        client = stack.enter_context(Client(whole.port, "/api", headers))
        time.sleep(_WARM_UP)
        before = rest.count()[0]
        time.sleep(_PEAK)
        result.peak = peak = (rest.count()[0] - before) / _PEAK
        if not peak:
            raise BenchFailure("no request was answered")
        rest.limit(peak / 2)
        minutes = count * interval / 60
        print(f"peak {peak:,.0f} requests/s; {minutes:g} minutes at half of it", file=sys.stderr)
        began = last = time.monotonic()
        counts = _counts(rest, sockets)
        for number in range(count):
            time.sleep(max(0.0, began + (number + 1) * interval - time.monotonic()))
            now = time.monotonic()
            counts_before, counts = counts, _counts(rest, sockets)
            new = {name: counts[name] - counts_before[name] for name in counts}
            result.samples.append(
                {growth.MINUTE: (now - began) / 60}
                | _held(whole, client)
                | {
                    "requests/s": new.pop("requests") / (now - last),
                    "slowest request, ms": rest.slowest() * 1000,
                    **new,
                }
            )
            last = now
            miner.check()
            sockets.check()
            print(f"{len(result.samples)}: {_short(result.samples[-1])}", file=sys.stderr)
        _, result.failures = rest.count()
        result.failed_sockets = sockets.failures


def _counts(rest: Rest, sockets: Sockets) -> Sample:
    """What is counted from the start of the clients on."""
    requests, failures = rest.count()
    return {
        "requests": requests,
        "failed requests": failures,
        "messages to sockets": sockets.messages,
        "connections of sockets": sockets.connections,
        "failed sockets": sockets.failures,
    }


def _short(sample: Sample) -> str:
    names = ("PSS, all processes", "anonymous memory, all processes", "requests/s")
    names += ("failed requests", "failed sockets")
    return ", ".join(f"{name} {sample[name]:,.0f}" for name in names)


def _held(whole: Whole, client: Client) -> Sample:
    """What everything holds at this moment."""
    processes = whole.processes()
    held = _by_role("anonymous memory", _anonymous(processes))
    held |= _by_role("PSS", {name: size for name, (_, size) in megabytes(processes).items()})
    held |= _by_role("open files", _open_files(processes))
    held["processes"] = float(len(processes))
    with psycopg.connect(whole.folder.database_url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        ).fetchone()
        held["connections of PostgreSQL"] = float(row[0] - 1) if row else 0.0
    with redis.Redis.from_url(whole.folder.redis_url) as store:
        held["connections of Redis"] = float(store.info("clients")["connected_clients"] - 1)
        held["keys of Redis"] = float(store.dbsize())
        held["memory of Redis, MiB"] = store.info("memory")["used_memory"] / 2**20
    files = whole.folder.redis.rglob("*")
    held["append-only file of Redis, MiB"] = total_size(files) / 2**20
    waiting: Any = client.send("GET", f"/classes/{WATCHED}?count=1&limit=0")
    held["objects whose trigger waits"] = float(waiting["count"])
    return held


def _by_role(what: str, values: dict[str, float]) -> Sample:
    sample = {f"{what}, {role}": value for role, value in values.items()}
    return sample | {f"{what}, all processes": sum(values.values())}


def _anonymous(processes: Iterable[psutil.Process]) -> dict[str, float]:
    """Memory that isn't that of files or shared buffers (MiB), by role. A page that forked
    processes share counts in each of them."""
    sizes: dict[str, float] = defaultdict(float)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            memory = process.memory_info()
            sizes[title(process)] += (memory.rss - memory.shared) / 2**20
    return dict(sizes)


def _open_files(processes: Iterable[psutil.Process]) -> dict[str, float]:
    numbers: dict[str, float] = defaultdict(float)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            numbers[title(process)] += process.num_fds()
    return dict(numbers)


def total_size(paths: Iterable[Path]) -> int:
    """The bytes of all files among the paths. Redis renames and removes files meanwhile."""
    size = 0
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return size
