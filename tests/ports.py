"""Ports for processes that tests start."""

from __future__ import annotations

import os
import random
import socket

# Below those that the system gives to connections and to whoever takes any that is free, a
# thousand for each process of a test run.
_FIRST, _EACH, _PROCESSES = 16_000, 1_000, 16
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_taken = random.randrange(_EACH)


def free_port() -> int:
    """A port for a process that is still to be started. No other process gets it meanwhile."""
    global _taken
    while True:
        _taken += 1
        port = _FIRST + _worker % _PROCESSES * _EACH + _taken % _EACH
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue  # another run's
        return port
