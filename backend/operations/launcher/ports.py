"""Whether a TCP port can be listened on, and if not, why, as one sentence."""

from __future__ import annotations

import contextlib
import errno
import socket

import psutil

from backend.instance.errors import StartError


def check(host: str, port: int, setting: str) -> None:
    """Raise ``StartError`` if nothing could listen there now. ``setting`` chooses the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen()
        except OSError as error:
            raise StartError(reason(host, port, setting, error)) from error


def reason(host: str, port: int, setting: str, error: OSError) -> str:
    """Why a port can't be listened on, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use{_listener(port)}: stop it, or set {setting} to another one."
    if error.errno == errno.EACCES:
        return (
            f"Port {port} needs a privilege that this account lacks (CAP_NET_BIND_SERVICE): give it"
            f" to the account, or choose a port above 1023 with {setting}."
        )
    return f"LISTEN_HOST={host} can't be listened on: {error.strerror or error}."


def _listener(port: int) -> str:
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if (
                connection.status == psutil.CONN_LISTEN
                and connection.laddr.port == port
                and connection.pid
            ):
                name = psutil.Process(connection.pid).name()
                return f" by {name} (process {connection.pid})"
    return ""
