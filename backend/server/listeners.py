"""Listening sockets: ``host:port`` or ``unix:/path``."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

_BACKLOG: Final = 4096
_FIRST_PASSED: Final = 3  # SD_LISTEN_FDS_START


_inherited: dict[str, socket.socket] = {}
_open: list[socket.socket] = []


def inherit(sockets: Mapping[str, socket.socket]) -> None:
    """Use these open sockets for their addresses."""
    _inherited.update(sockets)
    _open.extend(sockets.values())


def inherit_from_systemd() -> None:
    """Use the sockets that systemd has opened for this process (``sd_listen_fds``), for the
    addresses they have."""
    number = os.environ.pop("LISTEN_FDS", "")
    if os.environ.pop("LISTEN_PID", "") != str(os.getpid()) or not number.isdecimal():
        return
    for place in range(_FIRST_PASSED, _FIRST_PASSED + int(number)):
        listener = socket.socket(fileno=place)
        listener.set_inheritable(False)
        inherit({_address(listener): listener})


def _address(listener: socket.socket) -> str:
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return f"unix:{name}"
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"{host}:{name[1]}"


def close_others(own: Iterable[socket.socket | None] = ()) -> None:
    """In a fork: close all listening sockets that this process has no use for. Clients of a socket
    without an accepting process would wait as long as any process has it open."""
    own_sockets = [*own]
    for listener in _open:
        if listener not in own_sockets:
            listener.close()
    _open.clear()


def listening_socket(bind: str) -> socket.socket:
    """Return a listening socket: the inherited one, or a new one. Only the service's own account
    can open a Unix socket.

    The file of a Unix socket that a killed process has left is replaced. Raises ``OSError``.
    """
    if bind in _inherited:
        return _inherited[bind]
    if bind.startswith("unix:"):
        path = Path(bind.removeprefix("unix:"))
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        listener = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
    else:
        host, _, port = bind.rpartition(":")
        host = host.strip("[]")
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
    listener.listen(_BACKLOG)
    listener.set_inheritable(True)
    _open.append(listener)
    return listener
