"""What the folder of a PostgreSQL cluster says about it: its major, and the server that runs it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final, NamedTuple

from backend.instance.errors import StartError

_STOP: Final = 60.0  # seconds
_STATE: Final = 7  # the line of postmaster.pid


class Server(NamedTuple):
    """A server, as ``postmaster.pid`` has it; ``state`` is ``starting``, ``ready``, ``stopping`` or
    empty while it isn't known."""

    pid: int
    state: str


def major_of(cluster: Path) -> int | None:
    """The major that a cluster was made by; None if there is no cluster."""
    try:
        return int((cluster / "PG_VERSION").read_text())
    except (OSError, ValueError):
        return None


def server_of(cluster: Path) -> Server | None:
    """The server that the cluster's pid file names, which may have ended."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        return Server(int(lines[0]), lines[_STATE].strip() if len(lines) > _STATE else "")
    except (OSError, ValueError, IndexError):
        return None


def end_server(cluster: Path) -> None:
    """End a server that runs the cluster though its parent has ended, if there is one. Raises
    ``StartError`` if that takes more than a minute."""
    pid = _running(cluster)
    if pid is None:
        return
    os.kill(pid, signal.SIGINT)
    patience = time.monotonic() + _STOP
    while _running(cluster) == pid:
        if time.monotonic() > patience:
            raise StartError(f"Another PostgreSQL server (process {pid}) uses {cluster}.")
        time.sleep(0.05)


def _running(cluster: Path) -> int | None:
    """The process in the pid file, if it really is a server of this cluster."""
    server = server_of(cluster)
    try:
        if server and Path(os.readlink(f"/proc/{server.pid}/cwd")) == cluster.resolve():
            return server.pid
    except OSError:
        pass
    return None
