"""How long it takes from a transaction to its stored event, with the real processes: beat, which
sends a task for each look at the chain, and the chain worker."""

from __future__ import annotations

import contextlib
import random
import statistics
import sys
import time
from typing import Any

import psycopg

from bench.chain.filling import CHAIN_ID
from bench.failure import BenchFailure
from bench.servers import LOGS, ROOT, Engines, running, service_environment
from tests.evm.artefacts import Contract

_PATIENCE = 60


def measure(engines: Engines, gem: Contract, blocks: int, poll_ms: int) -> dict[str, Any]:
    """Milliseconds from a transaction to the commit of its event, for so many blocks at moments
    that have nothing to do with the polling."""
    environment = service_environment(engines) | {"LOG_LEVEL": "WARNING"}
    times = []
    with contextlib.ExitStack() as stack:
        for role in ("chain", "beat"):
            command = [sys.executable, "-m", "backend.serve", role]
            log = LOGS / f"{role}.log"
            stack.enter_context(running(role, command, ROOT, environment, log))
        connection = stack.enter_context(
            psycopg.connect(environment["DATABASE_URL"], autocommit=True)
        )
        _wait_until_following(connection, gem)
        for number in range(blocks):
            time.sleep(random.Random(number).uniform(0.05, 0.05 + poll_ms / 1000))
            times.append(_one(connection, gem))
    ordered = sorted(times)
    return {
        "blocks": blocks,
        "poll_ms": poll_ms,
        "p50_ms": statistics.median(ordered),
        "p99_ms": ordered[int(len(ordered) * 0.99)],
        "most_ms": ordered[-1],
    }


def _one(connection: psycopg.Connection[Any], gem: Contract) -> float:
    before = _events(connection)
    began = time.perf_counter()
    gem.transact("mint", gem.node.accounts[1])
    while _events(connection) == before:
        if time.perf_counter() - began > _PATIENCE:
            raise BenchFailure("an event isn't stored")
        time.sleep(0.001)  # ours to see it: half a millisecond on the average
    return (time.perf_counter() - began) * 1000


def _wait_until_following(connection: psycopg.Connection[Any], gem: Contract) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        row = connection.execute(
            "SELECT number FROM chain_cursor WHERE network_id = %s", (CHAIN_ID,)
        ).fetchone()
        if row and row[0] == gem.node.head:
            return
        if time.monotonic() > until:
            raise BenchFailure("the chain worker doesn't follow")
        time.sleep(0.05)


def _events(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(
        "SELECT outbox FROM chain_cursor WHERE network_id = %s", (CHAIN_ID,)
    ).fetchone()
    return row[0] if row else 0
