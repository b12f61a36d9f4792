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

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
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


class _Connection(HTTPConnection):
    response_class = _Answer


class _TlsConnection(HTTPSConnection):
    response_class = _Answer


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def connections(**options: Any) -> PoolManager:
    """Pools of such connections; the options are those of ``urllib3.PoolManager``."""
    found = PoolManager(**options)
    found.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
    return found
