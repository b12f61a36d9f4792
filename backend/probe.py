"""``python -m backend.probe``: whether the process that ``PROCESS`` names is healthy.

For a container's health check: exit status 0 when it is. The servers are asked over HTTP; worker
and beat are known by the heartbeats that they leave in Redis, Caddy by its port.
"""

from __future__ import annotations

import os
import socket
import sys
from http.client import HTTPConnection
from time import time
from urllib.parse import urlsplit


class SocketConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=5)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.sock.connect(self._path)


def _answers(bind: str) -> bool:
    if bind.startswith("unix:"):
        connection: HTTPConnection = SocketConnection(bind.removeprefix("unix:"))
    else:
        host, _, port = bind.rpartition(":")
        everywhere = {"0.0.0.0": "127.0.0.1", "[::]": "::1"}
        connection = HTTPConnection(everywhere.get(host, host).strip("[]"), int(port), timeout=5)
    connection.request("GET", "/health", headers={"Host": "localhost"})
    return connection.getresponse().status == 200


def _listens(sites: str) -> bool:
    """Whether Caddy listens where the first of its addresses says."""
    first = sites.split(",")[0].strip()
    site = urlsplit(first if "://" in first else f"https://{first}")
    try:
        port = site.port or (80 if site.scheme == "http" else 443)
        socket.create_connection(("127.0.0.1", port), 5).close()
    except (OSError, ValueError):
        return False
    return True


def _heard_from(which: str, silence: float) -> bool:
    import redis
    from django.conf import settings

    from backend.kernel.process import heartbeats

    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5) as client:
        latest = heartbeats.latest(client, which)
    return latest is not None and time() - latest < silence


def main() -> int:
    if os.environ.get("PROCESS") == "caddy":  # which has no settings of the service
        return 0 if _listens(os.environ.get("SITE_ADDRESS", "")) else 1
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings.django")
    from django.conf import settings

    try:
        match settings.PROCESS:
            case "web":
                healthy = _answers(settings.WEB_BIND[0])
            case "realtime":
                healthy = _answers(settings.REALTIME_BIND)
            case "worker" | "jobs" | "chain" | "backfill" | "beat":
                healthy = _heard_from(settings.PROCESS, 60)
            case other:
                raise SystemExit(f"PROCESS={other} has no health to ask for.")
    except OSError:
        healthy = False
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main())
