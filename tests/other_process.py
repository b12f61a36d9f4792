"""Another web process on the database of the test run: the service as a second one would have it.

For tests of what one process must notice of another's doing, and for clients that need a real
server.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.ports import free_port
from tests.rest import MASTER

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 60  # seconds, for a machine that is busy with other things


class OtherProcess:
    """A running web process; ``call`` sends it one request."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self.pid = pid
        self.url = f"http://127.0.0.1:{port}/api"

    def call(
        self, method: str, path: str, body: Any = None, more: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and JSON of a request with the master key, and with ``more`` headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            raw = None if body is None else json.dumps(body)
            headers = {**MASTER, "Content-Type": "application/json", **(more or {})}
            connection.request(method, f"/api{path}", raw, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def do(self, method: str, path: str, body: Any = None) -> Any:
        """As ``call``, for what must succeed; the JSON alone."""
        status, answer = self.call(method, path, body)
        assert status < 300, answer
        return answer


@contextmanager
def other_process(**settings: str) -> Iterator[OtherProcess]:
    """Start one, with these additional settings, and stop it when the block ends."""
    port = free_port()
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "WEB_BIND": f"127.0.0.1:{port}",
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "WEB_WORKERS": "1",
        "LOG_LEVEL": "ERROR",
        "CLOUD_MODULES": "tests.cloud",
        "WEBHOOK_ALLOW_PRIVATE": "127.0.0.0/8",
        **settings,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "backend.serve", "web"], cwd=ROOT, env=environment
    )
    try:
        _wait_for(process, port)
        yield OtherProcess(port, process.pid)
    finally:
        process.terminate()
        process.wait(_PATIENCE)


def database_url() -> str:
    from django.db import connection

    options = connection.settings_dict
    parts = {"user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    query = "&".join(
        f"{name}={quote(str(options[key]), safe='')}" for name, key in parts.items() if options[key]
    )
    return f"postgresql:///{quote(options['NAME'])}?{query}"


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"The web process ended with status {process.returncode}.")
        try:
            probe = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            probe.request("GET", "/api/health")
            if probe.getresponse().status == 200:
                return
        except OSError:
            process_is_starting = 0.1
            time.sleep(process_is_starting)
        finally:
            probe.close()
    raise RuntimeError("The web process doesn't answer.")
