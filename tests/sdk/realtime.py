"""A realtime process for SDKs, beside the process that serves REST."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.other_process import ROOT, OtherProcess, database_url
from tests.ports import free_port


class Realtime:
    """A realtime process on a port, which can be restarted."""

    def __init__(self, web: OtherProcess) -> None:
        self.web = web
        self.port = free_port()
        self.url = f"ws://127.0.0.1:{self.port}/livequery"
        self.start()

    def start(self) -> None:
        """Start it."""
        public_url = self.web.url.removesuffix("/api")
        environment = {
            **os.environ,
            "DATABASE_URL": database_url(),
            "PUBLIC_URL": public_url,
            "REALTIME_BIND": f"127.0.0.1:{self.port}",
            "PROCESS": "realtime",
        }
        command = [sys.executable, "-m", "backend.serve", "realtime"]
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment)

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Let it end."""
        self.process.terminate()
        self.process.wait(60)
