"""Caddy, where ``SITE_ADDRESS`` says that the service is reached through it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from backend.instance.errors import StartError
from backend.kernel.process.children import before_exec, end_of, stop, undisturbed
from backend.operations.embedded.binaries import caddy
from backend.operations.launcher import ports

ROOT: Final = Path(__file__).resolve().parents[3]
_STOP: Final = 10.0  # seconds
_ADAPTING: Final = 30.0  # seconds
_CONNECTING: Final = 1.0  # seconds
_PLAIN_PORT: Final = 80
"""Where Caddy redirects to https from, on each address where it serves that."""
_CONFIGURATION: Final = ("--config", "Caddyfile", "--adapter", "caddyfile")


class Proxy:
    """The proxy. ``settings`` are the application's, ``storage`` is the folder of certificates."""

    name = "caddy"

    def __init__(
        self,
        environment: Mapping[str, str],
        settings: Mapping[str, Any],
        sockets: Path,
        storage: Path,
    ) -> None:
        self.on_idle: Callable[[], None] = lambda: None
        self._environment = {
            **environment,
            "SITE_ADDRESS": settings["site"],
            "LISTEN_HOST": settings["host"],
            "PORT": str(settings["port"]),
            "WEB_UPSTREAM": f"unix/{sockets / 'web.sock'}",
            "REALTIME_UPSTREAM": f"unix/{sockets / 'realtime.sock'}",
            "CADDY_STORAGE": str(storage),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._addresses: list[tuple[str, int]] = []

    def check(self) -> None:
        """Raise ``StartError`` if Caddy can't use ``SITE_ADDRESS``, or couldn't listen there."""
        site = self._environment["SITE_ADDRESS"]
        try:
            done = subprocess.run(
                [caddy(), "adapt", *_CONFIGURATION],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_ADAPTING,
                check=False,
            )
        except subprocess.TimeoutExpired:
            reason = f"Caddy didn't check it within {_ADAPTING:.0f} seconds"
            raise StartError(f"SITE_ADDRESS={site} can't be used: {reason}.") from None
        if done.returncode != 0:
            raise StartError(f"SITE_ADDRESS={site} can't be used: {_reason(done.stderr)}.")
        self._addresses = _addresses(json.loads(done.stdout))
        for host, port in self._addresses:
            ports.check(host, port, "SITE_ADDRESS")

    def trouble(self) -> str | None:
        """What keeps it from accepting connections; None if nothing does."""
        for address in self._addresses:
            try:
                socket.create_connection(address, _CONNECTING).close()
            except OSError as error:
                return f"the proxy can't be reached on port {address[1]}: {error.strerror or error}"
        return None

    def start(self) -> None:
        """Start it; returns at once."""
        with undisturbed():
            self._process = subprocess.Popen(
                [caddy(), "run", *_CONFIGURATION],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=before_exec(signal.SIGTERM),
            )

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def missing(self) -> str | None:
        """Nothing: its ports can't be deleted."""
        return None

    @property
    def pids(self) -> set[int]:
        return {self._process.pid} if self._process else set()

    @property
    def end(self) -> str:
        return end_of(self._process)

    def stop(self) -> None:
        process, self._process = self._process, None
        stop(process, [(signal.SIGTERM, _STOP)])


def _reason(output: bytes) -> str:
    """Caddy's error: the message of the last line, which is JSON where it logs."""
    line = output.decode(errors="replace").strip().rpartition("\n")[2]
    try:
        return str(json.loads(line)["msg"])
    except (ValueError, KeyError, TypeError):
        return line or "Caddy says no reason"


def _addresses(configuration: Any) -> list[tuple[str, int]]:
    """Hosts and ports where Caddy listens with this configuration, by its rules of automatic
    https: names that aren't excluded from it are served by https, and redirected to it."""
    addresses: dict[tuple[str, int], None] = {}
    for server in configuration["apps"]["http"]["servers"].values():
        names = {
            name
            for route in server.get("routes", ())
            for matcher in route.get("match", ())
            for name in matcher.get("host", ())
        }
        is_secure = bool(names - {*server.get("automatic_https", {}).get("skip", ())})
        for address in server["listen"]:
            host, _, port = address.rpartition(":")
            host = host.strip("[]") or "0.0.0.0"
            addresses[host, int(port)] = None
            if is_secure:
                addresses[host, _PLAIN_PORT] = None
    return [*addresses]
