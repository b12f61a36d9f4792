"""A worker that gets SIGTERM ends, also when it is talking to a Redis that never returns."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlsplit

import psutil
import pytest

from backend.operations.embedded.engines import temporary_engines
from tests.backend.operations.service import PATIENCE, ROOT, run_manage

KEYS = {"SECRET_KEY": "k" * 40, "APP_ID": "app", "REST_API_KEY": "r" * 20, "MASTER_KEY": "m" * 20}


class Relay:
    """Redis behind a port, until a client has said so much."""

    def __init__(self, path: str, most: int) -> None:
        self._path = path
        self._left = most
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self.is_cut = threading.Event()
        self._begin(self._serve)

    def close(self) -> None:
        """Be gone, as a server that was killed."""
        self.is_cut.set()
        self._end(self._listener, *self._open)

    def _begin(self, target: object, *arguments: object) -> None:
        threading.Thread(target=target, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def _serve(self) -> None:
        while not self.is_cut.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._path)
            self._open += (client, server)
            self._begin(self._relay, client, server, True)
            self._begin(self._relay, server, client, False)

    def _relay(self, source: socket.socket, target: socket.socket, is_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._left -= is_client
                if self._left < 0:
                    self.close()
                    return
                target.sendall(data)
        self._end(source, target)

    def _end(self, *sockets: socket.socket) -> None:
        for item in sockets:
            with suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)
            item.close()


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, str]]:
    """The environment of an installation that is ready."""
    with temporary_engines() as results:
        environment = KEYS | {"DATABASE_URL": results.database_url, "REDIS_URL": results.redis_url}
        done = run_manage("migrate", "--verbosity", "0", **environment)
        assert done.returncode == 0, done.stderr
        yield environment


@contextmanager
def working(role: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    more = {"ENV_FILE": os.devnull, "LOG_LEVEL": "CRITICAL", "WORKER_CONCURRENCY": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "backend.serve", role],
        cwd=ROOT,
        env={**os.environ, **environment, **more},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        with suppress(psutil.Error):
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("role", ["worker", "chain"])
@pytest.mark.parametrize("message", [0, 20, 23, 26, 30, 37])
def test_a_worker_without_its_broker_ends_on_request(engines, role, message):
    with (
        closing(Relay(urlsplit(engines["REDIS_URL"]).path, message)) as redis,
        working(role, engines | {"REDIS_URL": redis.url}) as process,
    ):
        assert redis.is_cut.wait(PATIENCE)
        process.terminate()
        process.wait(30)  # three times as long as a container has by default
