"""Sending a webhook over HTTP: within a time as a whole, up to a size, never elsewhere.

Redirects aren't followed and proxies not used. TLS is verified for the name in the address.
Connections that stay open are used again for a few seconds: they lead to an address that was
checked when they were made.
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
from functions.webhooks.addresses import is_own, resolved

_PIECE: Final = 64 * 1024
_MOST_PLACES: Final = 4  # addresses of a name that are tried
_KEPT: Final = 4.0  # seconds; Node.js closes after five
_MOST_KEPT: Final = 4  # connections to one place
_Place = tuple[str, str, int]


@dataclass(frozen=True)
class Answer:
    """What came back, whatever its status is."""

    status: int
    body: bytes


def post(url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    """The answer to a POST, within ``WEBHOOK_TIMEOUT`` seconds. Raises ``Unreachable``."""
    parts = parts_of(url)
    if parts is None or parts.scheme not in ("https", "http"):
        raise Unreachable("its address is not one to call")
    with turn():
        try:
            return _posted(parts, body, headers, monotonic() + service_settings.WEBHOOK_TIMEOUT)
        except TimeoutError:
            limit = service_settings.WEBHOOK_TIMEOUT
            raise Unreachable(f"it took longer than {limit} seconds") from None
        except ssl.SSLError:
            raise Unreachable("TLS with it failed") from None
        except ConnectionRefusedError:
            raise Unreachable("the connection was refused") from None
        except (OSError, ValueError, HTTPException):
            raise Unreachable("the connection failed") from None


def _posted(parts: SplitResult, body: bytes, headers: Mapping[str, str], until: float) -> Answer:
    place = (parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme])
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = _kept.take(place)
    response = None
    if connection is not None:
        # It may have been closed at this moment; then nobody has seen the request.
        with suppress(RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            response = connection.ask(target, body, headers, until)
    if response is None or connection is None:
        connection = _connected(place, until)
        response = connection.ask(target, body, headers, until)
    is_usable = False
    try:
        received = _read(response)
        is_usable = not response.will_close
    finally:
        if is_usable:
            _kept.keep(place, connection)
        else:
            connection.line.end()
    return Answer(response.status, received)


_PORTS: Final = {"https": 443, "http": 80}


def _read(response: HTTPResponse) -> bytes:
    received = bytearray()
    while piece := response.read(_PIECE):
        received += piece
        if len(received) > service_settings.MAX_BODY_SIZE:
            raise Unreachable("its answer is too large")
    return bytes(received)


# -- Connections ----------------------------------------------------------------------------------


class _Line:
    """A socket that knows until when: http.client would wait anew for each piece."""

    def __init__(self, connected: socket.socket, until: float) -> None:
        self.connected = connected
        self.until = until

    def _arm(self) -> None:
        left = self.until - monotonic()
        if left <= 0:
            raise TimeoutError
        self.connected.settimeout(left)

    def sendall(self, data: Any) -> None:
        view = memoryview(data)
        while view:
            self._arm()
            view = view[self.connected.send(view[:_PIECE]) :]

    def receive_into(self, buffer: Any) -> int:
        self._arm()
        return self.connected.recv_into(buffer)

    def makefile(self, mode: str, *args: Any, **kwargs: Any) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self))

    def close(self) -> None:
        """http.client closes what a response is still read from."""

    def end(self) -> None:
        with suppress(OSError):
            self.connected.close()

    def is_quiet(self) -> bool:
        """Whether the other side has said nothing, not even farewell."""
        poll = select.poll()
        poll.register(self.connected, select.POLLIN)
        return not poll.poll(0)


class _Incoming(io.RawIOBase):
    def __init__(self, line: _Line) -> None:
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._line.receive_into(buffer)


class _Connection(HTTPConnection):
    """A connection that was made already, to an address that was checked."""

    auto_open = 0

    def __init__(self, host: str, port: int, default_port: int, line: _Line) -> None:
        super().__init__(host, port)
        self.default_port = default_port  # is left out of the Host header
        self.line = line
        self.sock = line  # all of a socket that http.client uses

    def ask(
        self, target: str, body: bytes, headers: Mapping[str, str], until: float
    ) -> HTTPResponse:
        self.line.until = until
        try:
            self.request("POST", target, body, dict(headers))
            return self.getresponse()
        except BaseException:
            self.line.end()
            raise


def _connected(place: _Place, until: float) -> _Connection:
    scheme, host, port = place
    failure: OSError = OSError("no address")
    for address in resolved(host, port, until - monotonic())[:_MOST_PLACES]:
        if scheme == "http" and not is_own(address):
            raise Unreachable("its address is called by https only")
        left = until - monotonic()
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
                raw.settimeout(max(until - monotonic(), 0.001))
                raw = _tls().wrap_socket(raw, server_hostname=host)
        except BaseException:
            raw.close()
            raise
        return _Connection(host, port, _PORTS[scheme], _Line(raw, until))
    raise failure


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class _Kept:
    """Connections that are open and not in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[_Place, list[tuple[float, _Connection]]] = {}

    def take(self, place: _Place) -> _Connection | None:
        while True:
            with self._lock:
                waiting = self._idle.get(place)
                if not waiting:
                    self._idle.pop(place, None)
                    return None
                since, connection = waiting.pop()
            if monotonic() - since < _KEPT and connection.line.is_quiet():
                return connection
            connection.line.end()

    def keep(self, place: _Place, connection: _Connection) -> None:
        now = monotonic()
        with self._lock:
            waiting = self._idle.setdefault(place, [])
            ended = [one for since, one in waiting if now - since >= _KEPT]
            waiting[:] = [(since, one) for since, one in waiting if now - since < _KEPT]
            if len(waiting) < _MOST_KEPT:
                waiting.append((now, connection))
            else:
                ended.append(connection)
        for one in ended:
            one.line.end()


_kept = _Kept()


def _begin_anew() -> None:
    """A forked process must not speak on connections of its parent."""
    global _kept
    _kept = _Kept()


os.register_at_fork(after_in_child=_begin_anew)
