"""Connections that end in time.

A socket's timeout is for one read, so whoever sends a byte now and then (of a header, or of lines
that say to go on waiting) would hold a thread for ever. Here the time is for the whole answer.
"""

from __future__ import annotations

import http.client
import io
import socket
from contextlib import suppress
from time import monotonic
from typing import Any

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection


class _Punctual(io.RawIOBase):
    """What comes from a socket, until the socket's timeout counted from now."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._sock = sock
        self._patience = sock.gettimeout()
        self._end = None if self._patience is None else monotonic() + self._patience

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._end is not None:
            left = self._end - monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        if not self.closed:
            with suppress(OSError):  # closed already
                self._sock.settimeout(self._patience)
            self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_Punctual(self.fp.detach(), sock))


class _Reopening:
    """A connection that records when it had to be opened again although the last response kept it
    open: the server was restarted or exchanged, or it closes idle connections."""

    sock: Any
    is_reopened = False
    _is_kept_open = False

    def connect(self) -> None:
        self.is_reopened = self._is_kept_open
        super().connect()  # type: ignore[misc]

    def getresponse(self) -> Any:
        response = super().getresponse()  # type: ignore[misc]
        self._is_kept_open = self.sock is not None
        return response


class _Connection(_Reopening, HTTPConnection):
    response_class = _Answer


class _TlsConnection(_Reopening, HTTPSConnection):
    response_class = _Answer


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def was_reopened(response: BaseHTTPResponse) -> bool:
    """Whether the connection of this response, whose body wasn't read yet, had to be opened again.
    True for the first response of such a connection only."""
    connection = response.connection
    if not isinstance(connection, _Reopening):
        return False
    is_reopened, connection.is_reopened = connection.is_reopened, False
    return is_reopened


def connections(**options: Any) -> PoolManager:
    """Pools of such connections; the options are those of ``urllib3.PoolManager``."""
    manager = PoolManager(**options)
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
    return manager
