"""The servers of sockets that are measured: ours, and those that do the same by other means."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import psutil

from backend.instance.folder import DATABASE
from bench import accounting
from bench.client import wait_until_answering
from bench.failure import BenchFailure
from bench.realtime.delivery import NETWORK
from bench.servers import (
    LOGS,
    ROOT,
    Engines,
    free_port,
    install_peer,
    running,
    service_environment,
)

HERE = Path(__file__).parent
_PATIENCE = 30
_LIMITS = {"WS_MAX_CONNECTIONS": "20000", "WS_MESSAGES_PER_MINUTE": "10000"}
"""Clients connect and subscribe all at once here."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server of sockets that runs: the processes whose work it is, the first of which holds the
    sockets."""

    name: str
    port: int
    path: str
    pids: tuple[int, ...]

    def cpu(self) -> float:
        """Seconds of all its processes."""
        return sum(accounting.cpu_seconds(pid) for pid in self.pids)

    def sockets_cpu(self) -> float:
        """Seconds of the process that holds the sockets."""
        return accounting.cpu_seconds(self.pids[0])

    def memory(self) -> int:
        """Bytes of the process that holds the sockets, and those below it."""
        processes = accounting.tree(self.pids[0])
        return sum(psutil.Process(pid).memory_info().rss for pid in processes)


Contender = Callable[[Engines], AbstractContextManager[Server]]

NAMES = {
    "ours": "this service",
    "ws": "bare ws (npm)",
    "core": "channels_redis, core",
    "pubsub": "channels_redis, pubsub",
}


@contextlib.contextmanager
def ours(engines: Engines, **settings: str) -> Iterator[Server]:
    """The service's realtime process, as in production, without the proxy."""
    port = free_port()
    environment = service_environment(engines) | {
        "REALTIME_BIND": f"127.0.0.1:{port}",
        "LOG_LEVEL": "WARNING",
        **_LIMITS,
        **settings,
    }
    command = [sys.executable, "-m", "backend.serve", "realtime"]
    with running("realtime", command, ROOT, environment, LOGS / "realtime.log") as pid:
        wait_until_answering(port, "/health")
        yield Server("ours", port, "/ws", (pid,))


@contextlib.contextmanager
def bare_ws(engines: Engines) -> Iterator[Server]:
    """``broadcast.js``."""
    install_peer()
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "NODE_ENV": "production",
        "PEER_PORT": str(port),
        "PEER_NETWORK": str(NETWORK),
        "PEER_DATABASE_URL": engines.url(DATABASE),
    }
    command = ["node", "broadcast.js"]
    with running("ws", command, HERE, environment, LOGS / "ws.log", until="ready") as pid:
        yield Server("ws", port, "/", (pid,))


def group_layer(name: str) -> Contender:
    """``group_layer.py`` with this layer of channels_redis."""

    @contextlib.contextmanager
    def run(engines: Engines) -> Iterator[Server]:
        port = free_port()
        environment = service_environment(engines) | {"GROUP_LAYER": name}
        module = "bench.realtime.group_layer"
        publish = [sys.executable, "-m", module]
        log = LOGS / f"{name}.log"
        with (
            running(name, asgi(port, f"{module}:application"), ROOT, environment, log) as pid,
            running(
                f"{name}-publisher",
                publish,
                ROOT,
                environment,
                LOGS / f"{name}-publisher.log",
                until="ready",
            ) as publisher,
        ):
            _wait_until_listening(port)
            yield Server(name, port, "/", (pid, publisher, redis_pid(engines)))

    return run


def asgi(port: int, application: str) -> list[str]:
    """The command that serves an ASGI application: uvicorn, or daphne where it isn't installed."""
    if importlib.util.find_spec("uvicorn"):
        options = ["--log-level", "warning", "--no-access-log", "--ws-per-message-deflate", "false"]
        where = ["--host", "127.0.0.1", "--port", str(port)]
        return [sys.executable, "-m", "uvicorn", *where, *options, application]
    return [sys.executable, "-m", "daphne", "-p", str(port), "--verbosity", "0", application]


CONTENDERS: dict[str, Contender] = {
    "ours": ours,
    "ws": bare_ws,
    "core": group_layer("core"),
    "pubsub": group_layer("pubsub"),
}


def available() -> list[str]:
    """The names of those that can be run here: the group layers need channels_redis."""
    if importlib.util.find_spec("channels_redis"):
        return list(CONTENDERS)
    return [name for name in CONTENDERS if name not in ("core", "pubsub")]


def redis_pid(engines: Engines) -> int:
    """The process of the run's Redis, which works for those who send through it."""
    import redis

    with redis.Redis.from_url(engines.redis_url) as client:
        return int(client.info("server")["process_id"])


def _wait_until_listening(port: int) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if time.monotonic() > until:
            raise BenchFailure(f"nothing listens on port {port}")
        time.sleep(0.05)
