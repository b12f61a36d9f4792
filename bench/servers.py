"""The servers that are measured: started on free ports of this machine, stopped at the end.

All of them use the same temporary PostgreSQL server over TCP, each with a database of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from backend.instance.folder import DATABASE, USER, temporary_folder
from backend.operations.embedded import binaries
from backend.operations.embedded.engines import Engines as EmbeddedEngines
from backend.settings.rate_limits import DEFAULTS, MOST
from bench import accounting, data
from bench.client import Client, wait_until_answering
from bench.failure import BenchFailure

HERE = Path(__file__).parent
ROOT = HERE.parent
_KEYS = {
    "APP_ID": "bench",
    "REST_API_KEY": "bench-rest-api-key",
    "MASTER_KEY": "bench-master-key-of-some-length",
    "SECRET_KEY": "bench-secret-key",
}
# The default limits cost what they do in production, but a load from one address doesn't meet them.
_LIMITS = json.dumps([{**rule, "count": MOST} for rule in DEFAULTS])
_PEER_DATABASE = "peer"
PROXIED = "+proxy"
LEARNED = "learned"
_FLUSHED = 6.0
"""Seconds after which processes have stored what their queries cost."""
LOGS = HERE / "results"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Engines:
    """The PostgreSQL and Redis of this run."""

    postgres_port: int
    postgres_pid: int
    redis_url: str
    folder: Path
    version: str

    def url(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.postgres_port}/{database}"

    def execute(self, database: str, *statements: str | sql.Composable) -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]

    def value(self, database: str, query: str | sql.Composable) -> Any:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            row = connection.execute(query).fetchone()  # type: ignore[arg-type]
        return row[0] if row else None


@contextlib.contextmanager
def engines() -> Iterator[Engines]:
    """Engines with their default durability, gone with their data when the block ends."""
    port = free_port()
    settings = {"listen_addresses": "127.0.0.1", "port": str(port)}
    with temporary_folder("svc-bench-") as folder:
        account = folder.prepare()
        with EmbeddedEngines(folder, account, settings=settings):
            pid = int((folder.postgres / "postmaster.pid").read_text().split()[0])
            url = f"postgresql://{USER}@127.0.0.1:{port}/{DATABASE}"
            with psycopg.connect(url) as connection:
                version = connection.info.parameter_status("server_version") or ""
            yield Engines(port, pid, folder.redis_url, folder.path, version)


@dataclass(frozen=True, slots=True)
class Target:
    """A running server."""

    name: str
    title: str
    port: int
    mount: str
    prefix: str
    pids: tuple[int, ...]
    """The processes whose work, with that of all below them, serves a request."""
    database: str
    versions: Mapping[str, str]
    tune: Callable[[Engines], None]
    """What an owner of this server would do by hand for the workloads: indexes, statistics."""

    @property
    def headers(self) -> dict[str, str]:
        return {
            f"{self.prefix}-Application-Id": _KEYS["APP_ID"],
            f"{self.prefix}-REST-API-Key": _KEYS["REST_API_KEY"],
        }

    def client(self) -> Client:
        return Client(self.port, self.mount, self.headers)

    @property
    def master_headers(self) -> dict[str, str]:
        return {**self.headers, f"{self.prefix}-Master-Key": _KEYS["MASTER_KEY"]}

    def master(self) -> Client:
        return Client(self.port, self.mount, self.master_headers)


def service_environment(engines: Engines) -> dict[str, str]:
    """The service's settings for this run."""
    return {
        **os.environ,
        **_KEYS,
        "DATABASE_URL": engines.url(DATABASE),
        "REDIS_URL": engines.redis_url,
        "DATA_DIR": str(engines.folder),
        "MOUNT_PATH": "/api",
        "RATE_LIMITS": _LIMITS,
        "CLIENT_SLOW_REQUESTS": "512",
        "CLOUD_MODULES": "bench.cloud",
    }


def migrate(engines: Engines) -> None:
    """Make the service's tables, or bring them up to date."""
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    environment = service_environment(engines)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise BenchFailure(f"migrate failed: {done.stderr.strip()[-400:]}")


@contextlib.contextmanager
def ours(engines: Engines, workers: int, threads: int | None = None) -> Iterator[Target]:
    """The service's web process, as in production, without the proxy."""
    port = free_port()
    migrate(engines)
    environment = service_environment(engines) | {
        "WEB_BIND": f"127.0.0.1:{port}",
        "WEB_WORKERS": str(workers),
    }
    if threads is not None:
        environment["WEB_THREADS"] = str(threads)
    command = [sys.executable, "-m", "backend.serve", "web"]
    with running("ours", command, ROOT, environment, LOGS / "ours.log") as pid:
        wait_until_answering(port, "/health")
        yield _ours(f"this service, {workers} processes", port, pid)


@contextlib.contextmanager
def delivered(engines: Engines, workers: int, **more: str) -> Iterator[Target]:
    """The service as ``script/server`` starts it: its public port and all its processes, with
    PostgreSQL and Redis of this run, and with more settings than the usual ones."""
    port = free_port()
    folder = engines.folder / "delivered"
    folder.mkdir(exist_ok=True)
    environment = service_environment(engines) | {
        "DATA_DIR": str(folder),
        "ENV_FILE": os.devnull,
        "PORT": str(port),
        "WEB_WORKERS": str(workers),
        **more,
    }
    command = [sys.executable, "-m", "backend.embedded"]
    with running("script/server", command, ROOT, environment, LOGS / "delivered.log") as pid:
        wait_until_answering(port, "/ready")
        yield _ours(f"script/server, {workers} web processes", port, pid)


def _ours(title: str, port: int, pid: int) -> Target:
    return Target(
        "ours",
        title,
        port,
        "/api",
        "X-Svc",
        (pid,),
        DATABASE,
        python_versions(),
        _tune_ours,
    )


def python_versions(*more: str) -> dict[str, str]:
    """The versions that figures depend on, those of these packages as well."""
    from importlib.metadata import version

    from backend import __version__

    names = ("Django", "httptools", "psycopg", "msgspec", *more)
    return {
        "service": __version__,
        "Python": sys.version.split()[0],
        **{name: version(name) for name in names},
    }


def learn(engines: Engines) -> str:
    """Build the indexes that the queries so far suggest, with the schedule's own conditions; what
    there is then. The schedule does so every 15 seconds: beat doesn't run here."""
    time.sleep(_FLUSHED)
    command = [sys.executable, "manage.py", "indexes", data.MAIN, "--build"]
    environment = service_environment(engines)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise BenchFailure(f"indexes failed: {done.stderr.strip()[-400:]}")
    return done.stdout


def _tune_ours(engines: Engines) -> None:
    engines.execute(DATABASE, "VACUUM ANALYZE", "CHECKPOINT")


def peer_environment(engines: Engines, port: int) -> dict[str, str]:
    """The settings of a process of ``peer.js`` that listens on this port."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "NODE_ENV": "production",
        "PARSE_SERVER_LOGS_FOLDER": "null",
        "PEER_PORT": str(port),
        "PEER_DATABASE_URL": engines.url(_PEER_DATABASE).replace("postgresql:", "postgres:"),
        **{f"PEER_{name}": value for name, value in _KEYS.items()},
    }


@contextlib.contextmanager
def peer(engines: Engines, workers: int, **more: str) -> Iterator[Target]:
    """Parse Server from npm, as a cluster of processes, with more settings than the usual ones."""
    install_peer()
    name = sql.Identifier(_PEER_DATABASE)
    engines.execute("postgres", sql.SQL("DROP DATABASE IF EXISTS {}").format(name))
    engines.execute("postgres", sql.SQL("CREATE DATABASE {}").format(name))
    port = free_port()
    environment = peer_environment(engines, port) | {"PEER_PROCESSES": str(workers), **more}
    log = LOGS / "peer.log"
    with running("peer", ["node", "peer.js"], HERE, environment, log, until="ready") as pid:
        node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
        yield Target(
            "peer",
            f"Parse Server, {workers} processes",
            port,
            "/parse",
            "X-Parse",
            (pid,),
            _PEER_DATABASE,
            {"parse-server": _peer_version(), "node": node.stdout.strip().lstrip("v")},
            _tune_peer,
        )


def _tune_peer(engines: Engines) -> None:
    """The indexes that the service has by declaration or from the start, made by hand here."""
    table = sql.Identifier(data.MAIN)
    engines.execute(
        _PEER_DATABASE,
        *(
            sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} ({})").format(
                sql.Identifier(f"bench_{field}"), table, sql.Identifier(field)
            )
            for field in ("score", "createdAt")
        ),
        "VACUUM ANALYZE",
        "CHECKPOINT",
    )


def install_peer() -> None:
    """Install what package-lock.json pins, once."""
    stamp = HERE / "node_modules" / ".package-lock.json"
    lock = HERE / "package-lock.json"
    if stamp.exists() and stamp.stat().st_mtime >= lock.stat().st_mtime:
        return
    if shutil.which("npm") is None:
        raise BenchFailure("the peer needs Node.js 20.19 or later with npm")
    print("installing the peer from npm", file=sys.stderr, flush=True)
    done = subprocess.run(["npm", "ci", "--no-progress"], cwd=HERE, capture_output=True, text=True)
    if done.returncode != 0:
        raise BenchFailure(f"npm ci failed: {done.stderr.strip()[-400:]}")
    os.utime(stamp)


def _peer_version() -> str:
    package = HERE / "node_modules" / "parse-server" / "package.json"
    return str(json.loads(package.read_text())["version"])


@contextlib.contextmanager
def proxied(target: Target, folder: Path) -> Iterator[Target]:
    """The same server behind Caddy, with nothing but the proxying configured."""
    port = free_port()
    configuration = folder / f"{target.name}.caddyfile"
    configuration.write_text(
        "{\n\tadmin off\n\tauto_https off\n\tpersist_config off\n}\n"
        f"http://127.0.0.1:{port} {{\n\treverse_proxy 127.0.0.1:{target.port}\n}}\n"
    )
    command = [str(binaries.caddy()), "run", "--config", str(configuration)]
    command += ["--adapter", "caddyfile"]
    log = LOGS / f"{target.name}-proxy.log"
    with running("caddy", command, folder, dict(os.environ), log) as pid:
        wait_until_answering(port, "/")
        yield Target(
            f"{target.name}{PROXIED}",
            f"{target.title}, behind Caddy",
            port,
            target.mount,
            target.prefix,
            (pid, *target.pids),
            target.database,
            target.versions,
            target.tune,
        )


@contextlib.contextmanager
def running(
    name: str,
    command: list[str],
    folder: Path,
    environment: dict[str, str],
    log: Path,
    until: str | None = None,
) -> Iterator[int]:
    """Run a command while the block runs; its output goes to ``log`` after the line ``until``."""
    LOGS.mkdir(exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if until else output,
            stderr=output,
            start_new_session=True,
        )
        try:
            if until and process.stdout:
                line = process.stdout.readline().decode().strip()
                if line != until:
                    raise BenchFailure(f"{name} doesn't start: {_last_lines(log)}")
            yield process.pid
            if process.poll() is not None:
                raise BenchFailure(f"{name} ended by itself: {_last_lines(log)}")
        finally:
            below = accounting.tree(process.pid)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                for pid in below:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait()


def _last_lines(log: Path) -> str:
    return " / ".join(log.read_text(errors="replace").strip().splitlines()[-3:])


def prepare(target: Target) -> None:
    """Make the classes of the benchmark, with the declared index where the server has those."""
    with target.master() as master:
        for name, fields in (
            (data.OWNER, data.OWNER_FIELDS),
            (data.MAIN, data.FIELDS),
            (data.WRITTEN, data.FIELDS),
            (data.CHECKED, data.FIELDS),
        ):
            declaration: dict[str, Any] = {"className": name, "fields": fields}
            if name == data.MAIN and target.name == "ours":
                declaration["indexes"] = {"by_score": {"score": 1}}
            master.send("POST", f"/schemas/{name}", declaration)
    _wait_until_known(target, data.CHECKED)


def _wait_until_known(target: Target, class_name: str) -> None:
    """Processes may hear of a class a moment after the one that made it."""
    known = 0
    for _ in range(1_000):
        with target.client() as client:
            status, _ = client.attempt("GET", f"{target.mount}/classes/{class_name}", None)
        known = known + 1 if status == 200 else 0
        if known == 20:
            return
        time.sleep(0.01)
    raise BenchFailure(f"{target.name} doesn't know the class {class_name} everywhere")
