"""Caddy, where ``SITE_ADDRESS`` says that the service is reached through it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from backend.embedded.binaries import caddy
from backend.embedded.children import before_exec, end_of, stop, undisturbed

ROOT: Final = Path(__file__).resolve().parents[2]
_STOP: Final = 10.0  # seconds


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

    def start(self) -> None:
        """Start it; returns at once."""
        with undisturbed():
            self._process = subprocess.Popen(
                [caddy(), "run", "--config", "Caddyfile", "--adapter", "caddyfile"],
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
    def pids(self) -> set[int]:
        return {self._process.pid} if self._process else set()

    @property
    def end(self) -> str:
        return end_of(self._process)

    def stop(self) -> None:
        process, self._process = self._process, None
        stop(process, [(signal.SIGTERM, _STOP)])
