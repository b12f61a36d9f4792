"""Ponder from npm on the same chain and the same PostgreSQL: cold, and with what it has kept of the
node's answers."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from bench import accounting
from bench.chain.filling import CHAIN_ID, Filled
from bench.failure import BenchFailure
from bench.measure import say
from bench.servers import LOGS, Engines, free_port, running

HERE = Path(__file__).parent / "ponder"
_PATIENCE = 300


def install() -> None:
    """Install what package.json names, once."""
    stamp = HERE / "node_modules" / ".package-lock.json"
    if stamp.exists() and stamp.stat().st_mtime >= (HERE / "package.json").stat().st_mtime:
        return
    if shutil.which("npm") is None:
        raise BenchFailure("Ponder needs Node.js 20 or later with npm")
    say("installing Ponder from npm")
    command = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    if done.returncode != 0:
        raise BenchFailure(f"npm install failed: {done.stderr.strip()[-400:]}")
    os.utime(stamp)


def version() -> str:
    package = HERE / "node_modules" / "ponder" / "package.json"
    return str(json.loads(package.read_text())["version"])


def measure(engines: Engines, chain: Filled, number: int) -> dict[str, Any]:
    """A cold run, and one with another schema and the answers of the first. In each, ``seconds``
    are those from the moment that its table is there, ``start_seconds`` those before."""
    database = f"ponder{number}"
    engines.execute("postgres", sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
    return {
        "cold": _run(engines, chain, database, "cold"),
        "cached": _run(engines, chain, database, "cached"),
    }


def _run(engines: Engines, chain: Filled, database: str, schema: str) -> dict[str, Any]:
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "PONDER_TELEMETRY_DISABLED": "1",
        "PONDER_BENCH_DATABASE": engines.url(database),
        "PONDER_BENCH_CHAIN": str(CHAIN_ID),
        "PONDER_BENCH_RPC": chain.node.url,
        "PONDER_BENCH_ADDRESS": chain.gem.address,
    }
    command = ["node", "node_modules/ponder/dist/esm/bin/ponder.js", "start"]
    command += ["--schema", schema, "--port", str(free_port()), "--log-format", "json"]
    log = LOGS / f"ponder-{database}-{schema}.log"
    postgres = accounting.cpu_seconds(engines.postgres_pid)
    began = time.perf_counter()
    with running("ponder", command, HERE, environment, log) as pid:
        with psycopg.connect(engines.url(database), autocommit=True) as connection:
            table = sql.Identifier(schema, "event")
            _wait(connection, table, None)
            there = time.perf_counter()
            _wait(connection, table, chain.events)
        done = time.perf_counter()
        own = accounting.cpu_seconds(pid)
        memory = sum(_rss_mb(one) for one in accounting.tree(pid))
    postgres = accounting.cpu_seconds(engines.postgres_pid) - postgres
    return {
        "count": chain.events,
        "seconds": done - there,
        "start_seconds": there - began,
        "rate": chain.events / (done - there),
        "own_cpu_us": own / chain.events * 1e6,
        "postgres_cpu_us": postgres / chain.events * 1e6,
        "peak_mb": memory,
    }


def _wait(connection: psycopg.Connection[Any], table: sql.Identifier, count: int | None) -> None:
    """Until the table is there, or has so many rows."""
    until = time.monotonic() + _PATIENCE
    query = sql.SQL("SELECT count(*) FROM {}").format(table)
    while time.monotonic() < until:
        with contextlib.suppress(psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            row = connection.execute(query).fetchone()
            if row and (count is None or row[0] >= count):
                return
        time.sleep(0.05)
    raise BenchFailure("Ponder doesn't get done")


def _rss_mb(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return 0.0
