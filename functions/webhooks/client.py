"""HTTP client for webhooks, with a total time limit, a size limit and no redirects.

Redirects aren't followed and proxies aren't used. TLS is verified for the host name in the URL.
Idle connections are reused for a few seconds: their address was checked when they were opened.
"""

from __future__ import annotations

import io
import os
import select
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, RemoteDisconnected
from time import monotonic
from typing import Any, Final
from urllib.parse import SplitResult

from backend.kernel.outgoing import Unreachable, parts_of, turn
from backend.settings.conf import service_settings
from functions.webhooks.addresses import resolved

_CHUNK_SIZE: Final = 64 * 1024
_MAX_ADDRESSES: Final = 4  # addresses of a name that are tried
_IDLE_TIMEOUT: Final = 4.0  # seconds; Node.js closes after five
_MAX_IDLE: Final = 4  # connections to one origin
MAX_IDLE_TOTAL: Final = 32
"""Connections that stay open although no request uses them."""
_Origin = tuple[str, str, int]


@dataclass(frozen=True)
class Response:
    """The response to a request, of any status."""

    status: int
    body: bytes


def post(
    url: str, body: bytes, headers: Mapping[str, str], seconds: float | None = None
) -> Response:
    """Send a POST and return the response, in one of the process's turns for requests.

    ``seconds`` is its time, by default ``WEBHOOK_TIMEOUT``. Raises ``Unreachable``.
    """
    with turn():
        return send(url, body, headers, seconds)


def send(
    url: str, body: bytes, headers: Mapping[str, str], seconds: float | None = None
) -> Response:
    """As ``post``, for a caller that limits the number of its requests itself."""
    limit = service_settings.WEBHOOK_TIMEOUT if seconds is None else seconds
    parts = parts_of(url)
    if parts is None or parts.scheme not in ("https", "http"):
        raise Unreachable("its address is not one to call")
    try:
        return _post(parts, body, headers, monotonic() + limit)
    except TimeoutError:
        raise Unreachable(f"it took longer than {limit:.3g} seconds") from None
    except ssl.SSLError:
        raise Unreachable("TLS with it failed") from None
    except ConnectionRefusedError:
        raise Unreachable("the connection was refused") from None
    except (OSError, ValueError, HTTPException):
        raise Unreachable("the connection failed") from None


def _post(parts: SplitResult, body: bytes, headers: Mapping[str, str], deadline: float) -> Response:
    origin = (parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme])
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = _idle_connections.take(origin)
    response = None
    if connection is not None:
        # The receiver may have just closed it, and then it hasn't read the request.
        with suppress(RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            response = connection.post(target, body, headers, deadline)
    if response is None or connection is None:
        connection = _connect(origin, deadline)
        response = connection.post(target, body, headers, deadline)
    is_usable = False
    try:
        received = _read(response)
        is_usable = not response.will_close
    finally:
        if is_usable:
            _idle_connections.keep(origin, connection)
        else:
            connection.stream.end()
    return Response(response.status, received)


_PORTS: Final = {"https": 443, "http": 80}


def _read(response: HTTPResponse) -> bytes:
    received = bytearray()
    while chunk := response.read(_CHUNK_SIZE):
        received += chunk
        if len(received) > service_settings.MAX_BODY_SIZE:
            raise Unreachable("its response is too large")
    return bytes(received)


# -- Connections ----------------------------------------------------------------------------------


class _DeadlineSocket:
    """A socket with a total deadline; http.client applies its timeout to each read."""

    def __init__(self, raw: socket.socket, deadline: float) -> None:
        self.socket = raw
        self.deadline = deadline

    def _arm(self) -> None:
        left = self.deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        self.socket.settimeout(left)

    def sendall(self, data: Any) -> None:
        view = memoryview(data)
        while view:
            self._arm()
            view = view[self.socket.send(view[:_CHUNK_SIZE]) :]

    def receive_into(self, buffer: Any) -> int:
        self._arm()
        return self.socket.recv_into(buffer)

    def makefile(self, mode: str, *args: Any, **kwargs: Any) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self))

    def close(self) -> None:
        """Do nothing: http.client calls this while a response is still being read."""

    def end(self) -> None:
        with suppress(OSError):
            self.socket.close()

    def is_quiet(self) -> bool:
        """Whether the peer has sent neither data nor a close."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return not poll.poll(0)


class _Incoming(io.RawIOBase):
    def __init__(self, stream: _DeadlineSocket) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._stream.receive_into(buffer)


class _Connection(HTTPConnection):
    """A connection over a socket that is already open, to a checked address."""

    auto_open = 0

    def __init__(self, host: str, port: int, default_port: int, stream: _DeadlineSocket) -> None:
        super().__init__(host, port)
        self.default_port = default_port  # omitted from the Host header
        self.stream = stream
        self.sock = stream  # has the methods of a socket that http.client uses

    def post(
        self, target: str, body: bytes, headers: Mapping[str, str], deadline: float
    ) -> HTTPResponse:
        self.stream.deadline = deadline
        try:
            self.request("POST", target, body, dict(headers))
            return self.getresponse()
        except BaseException:
            self.stream.end()
            raise


def _connect(origin: _Origin, deadline: float) -> _Connection:
    scheme, host, port = origin
    failure: OSError = OSError("no address")
    addresses = resolved(host, port, deadline - monotonic(), scheme=scheme)
    for address in addresses[:_MAX_ADDRESSES]:
        left = deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        try:
            raw = socket.create_connection((str(address), port), timeout=left)
        except TimeoutError:
            raise
        except OSError as error:
            failure = error
            continue
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if scheme == "https":
                raw.settimeout(max(deadline - monotonic(), 0.001))
                raw = _tls().wrap_socket(raw, server_hostname=host)
        except BaseException:
            raw.close()
            raise
        return _Connection(host, port, _PORTS[scheme], _DeadlineSocket(raw, deadline))
    raise failure


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class _IdleConnections:
    """Open connections that aren't in use: some for each origin, and some altogether."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []  # the longest idle first

    def take(self, origin: _Origin) -> _Connection | None:
        """Return a connection that can be used again, if there is one."""
        while True:
            with self._lock:
                latest = next(
                    (idle for idle in reversed(self._idle) if idle.origin == origin), None
                )
                if latest is None:
                    return None
                self._idle.remove(latest)
            if not latest.is_old() and latest.connection.stream.is_quiet():
                return latest.connection
            latest.connection.stream.end()

    def keep(self, origin: _Origin, connection: _Connection) -> None:
        """Keep a connection for later requests. End those that are too old or too many."""
        with self._lock:
            self._idle.append(_Idle(origin, connection, monotonic()))
            same = [idle for idle in self._idle if idle.origin == origin]
            leaving = [
                idle
                for place, idle in enumerate(self._idle, 1)
                if idle.is_old()
                or idle in same[:-_MAX_IDLE]
                or place <= len(self._idle) - MAX_IDLE_TOTAL
            ]
            self._idle = [idle for idle in self._idle if idle not in leaving]
        for idle in leaving:
            idle.connection.stream.end()


@dataclass(frozen=True, eq=False)
class _Idle:
    origin: _Origin
    connection: _Connection
    since: float

    def is_old(self) -> bool:
        return monotonic() - self.since >= _IDLE_TIMEOUT


_idle_connections = _IdleConnections()


def _reset_after_fork() -> None:
    """Drop the connections of the parent process after a fork."""
    global _idle_connections
    _idle_connections = _IdleConnections()


os.register_at_fork(after_in_child=_reset_after_fork)
