"""Whole instances beside the test run's own: each with a database, keys and files of its own."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.backend.operations.service import PATIENCE, ROOT, plain_environment
from tests.other_process import _wait_for
from tests.ports import free_port

FIRST_KEYS = {
    "SECRET_KEY": "first-secret-key-of-fifty-characters-or-a-few-more-",
    "APP_ID": "first-app",
    "REST_API_KEY": "first-rest-key",
    "MASTER_KEY": "first-master-key-that-is-long",
}
OTHER_KEYS = {name: value.replace("first", "other") for name, value in FIRST_KEYS.items()}


def database_url(name: str) -> str:
    """The address of another database on the test run's server."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    return f"postgresql://{parts.netloc}/{name}?{parts.query}"


@contextmanager
def new_database(name: str, like: str | None = None) -> Iterator[str]:
    """The address of a new database, which is dropped afterwards; empty, or with the contents of
    the one at the address ``like``."""
    name = f"{name}_{os.getpid()}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        template = f" TEMPLATE {urlsplit(like).path[1:]}" if like else ""
        server.execute(f"CREATE DATABASE {name}{template}")
        try:
            yield database_url(name)
        finally:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@dataclass
class Answer:
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Instance:
    """One instance; ``keys`` are kept in its data folder as script/server keeps them."""

    data: Path
    database: str
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = 0

    def has_keys(self, keys: Mapping[str, str]) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{name}={value}\n" for name, value in keys.items())
        (self.data / "keys.env").write_text(text)

    @property
    def keys(self) -> dict[str, str]:
        lines = (self.data / "keys.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if not line.startswith("#"))

    @property
    def environment(self) -> dict[str, str]:
        return plain_environment(
            DATA_DIR=self.data,
            DATABASE_URL=self.database,
            REDIS_URL=os.environ["REDIS_URL"],
            RATE_LIMITS="off",
            LOG_LEVEL="ERROR",
            **self.settings,
        )

    def manage(self, *arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run ``manage.py``."""
        return subprocess.run(
            [sys.executable, ROOT / "manage.py", *map(str, arguments)],
            env=self.environment | settings,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def start(self, *arguments: object) -> subprocess.Popen[bytes]:
        """Run ``manage.py`` and don't wait for it."""
        return subprocess.Popen(
            [sys.executable, ROOT / "manage.py", *map(str, arguments)],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def do(self, *arguments: object, **settings: str) -> str:
        """As ``manage``, for what must succeed; what it prints."""
        done = self.manage(*arguments, **settings)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *arguments: object, **settings: str) -> str:
        """As ``manage``, for what must fail; what it says."""
        done = self.manage(*arguments, **settings)
        assert done.returncode == 1, (done.stdout, done.stderr)
        return done.stderr

    def run(self, code: str) -> str:
        """Run Python with this instance's settings; what it prints."""
        setup = "import django; django.setup()\n"
        done = subprocess.run(
            [sys.executable, "-c", setup + code],
            cwd=ROOT,
            env=self.environment | {"DJANGO_SETTINGS_MODULE": "backend.settings.django"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @contextmanager
    def web(self) -> Iterator[Instance]:
        """A web process of this instance; it stops when the block ends."""
        self.port = free_port()
        process = subprocess.Popen(
            [sys.executable, "-m", "backend.serve", "web"],
            cwd=ROOT,
            env=self.environment
            | {
                "WEB_BIND": f"127.0.0.1:{self.port}",
                "PUBLIC_URL": f"http://127.0.0.1:{self.port}",
                "WEB_WORKERS": "1",
            },
        )
        try:
            _wait_for(process, self.port)
            yield self
        finally:
            process.terminate()
            process.wait(PATIENCE)

    def call(
        self, method: str, path: str, body: Any = None, key: str = "master", **headers: str
    ) -> Answer:
        """One request with the master key or, with ``key="rest"``, as a client."""
        sent = {"X-Svc-Application-Id": self.keys["APP_ID"]}
        name = {"master": "MASTER_KEY", "rest": "REST_API_KEY"}[key]
        header = {"master": "X-Svc-Master-Key", "rest": "X-Svc-REST-API-Key"}[key]
        sent[header] = self.keys[name]
        if not isinstance(body, bytes):
            sent["Content-Type"] = "application/json"
            body = None if body is None else json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            sent |= {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, f"/api{path}", body, sent)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()

    def ask(self, method: str, path: str, body: Any = None, **options: str) -> Any:
        """As ``call``, for what must succeed; the JSON alone."""
        answer = self.call(method, path, body, **options)
        assert answer.status < 300, answer.body
        return answer.json
