"""Runs the processes of the Procfile under honcho, until one of them ends or we are told to stop.

The processes write to our own standard error directly: a pipe through the runner would cost more
than answering a request does. When the runner dies, whatever the reason, so do they.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import honcho.manager
from honcho.environ import parse_procfile
from honcho.printer import Message
from honcho.process import Process

from backend.embedded.children import before_exec, die_with_parent, end_descendants

_PROXY = "caddy"
honcho.manager.KILL_WAIT = 15  # seconds that a process may take to finish what it is doing


class _Child(Process):
    """honcho's process: a fork of the runner that waits for the real one."""

    def run(self, events: Any = None, ignore_signals: bool = False) -> None:
        die_with_parent(signal.SIGKILL)
        self._events = events
        self._child = subprocess.Popen(
            self.cmd,
            shell=True,
            env=self.env,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=before_exec(signal.SIGTERM),
        )
        self._send_message({"pid": self._child.pid}, type="start")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        returncode = self._child.wait()
        self._send_message({"returncode": returncode}, type="stop")


class _Printer:
    """Says only what nobody asked for: that a process ended by itself."""

    width = 0

    def __init__(self) -> None:
        self.manager: honcho.manager.Manager | None = None

    def write(self, message: Message) -> None:
        stopping = self.manager is None or self.manager._terminating
        if not stopping and "stopped" in message.data:
            name = message.data.partition(" ")[0]
            print(f"{name} ended unexpectedly; stopping everything.", file=sys.stderr, flush=True)


def run(procfile: Path) -> int:
    """Run the Procfile's processes; returns when all of them have ended."""
    printer = _Printer()
    manager = honcho.manager.Manager(printer)
    printer.manager = manager
    manager._process_ctor = _Child
    environment = dict(os.environ)
    for name, command in parse_procfile(procfile.read_text()).processes.items():
        if name == _PROXY and not environment.get("SITE_ADDRESS"):
            continue  # web processes have the public port themselves
        manager.add_process(
            name, command, env=environment | {"PROCESS": name}, cwd=str(procfile.parent)
        )
    manager.loop()
    end_descendants()
    return int(manager.returncode or 0)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1])))
