"""An HTTP client with limits on time and size.

Redirects aren't followed. TLS is verified for the host name in the URL. The time of a request is
for all of it: name resolution, connection, request and response.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Final

import h11

from backend.kernel.outgoing.connection import Connection, Headers, Origin
from backend.kernel.outgoing.failures import TooLarge, Unreachable, unreachable_for
from backend.kernel.outgoing.idle import IdleConnections
from backend.kernel.outgoing.sockets import (
    Resolve,
    connect,
    connect_through_proxy,
    every_address,
    host_header,
)
from backend.kernel.outgoing.urls import PORTS, parts_of

_MAX_IDLE_TOTAL: Final = 32
"""Connections of a client that stay open although no request uses them."""
_UNPACKED: Final = 64 * 1024  # bytes at a time


@dataclass(frozen=True)
class Response:
    """A response of any status. The names of ``headers`` are in lower case; the values of repeated
    ones are joined by commas."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class Stream:
    """A response whose body is being read. ``headers`` are as in ``Response``."""

    def __init__(self, head: h11.Response, connection: Connection, seconds: float) -> None:
        self.status = head.status_code
        self.headers: dict[str, str] = {}
        for raw_name, raw_value in head.headers:
            name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        self._connection = connection
        self._seconds = seconds

    def pieces(self) -> Iterator[bytes]:
        """Return the body piece by piece, unpacked. Raises ``Unreachable``.

        What comes compressed more than once wasn't requested, and isn't unpacked.
        """
        coding = self.headers.get("content-encoding", "identity").strip().lower()
        if coding in ("", "identity"):
            yield from self._raw_pieces()
        elif coding in ("gzip", "x-gzip"):
            yield from self._unpacked_pieces()
        else:
            raise Unreachable("its response is in an encoding that wasn't requested")

    def read(self, most: int) -> bytes:
        """Return the body. Raises ``TooLarge`` if it has more bytes, else as ``pieces``."""
        body = bytearray()
        for piece in self.pieces():
            body += piece
            if len(body) > most:
                raise TooLarge("its response is too large")
        return bytes(body)

    def _raw_pieces(self) -> Iterator[bytes]:
        while True:
            with unreachable_for(self._seconds):
                piece = self._connection.next_piece()
            if piece is None:
                return
            yield piece

    def _unpacked_pieces(self) -> Iterator[bytes]:
        # A few bytes could become gigabytes, so never more than a piece is unpacked at once.
        decoder = None
        for piece in self._raw_pieces():
            while piece:
                decoder = decoder or zlib.decompressobj(wbits=31)
                with unreachable_for(self._seconds):
                    unpacked = decoder.decompress(piece, _UNPACKED)
                if unpacked:
                    yield unpacked
                piece = decoder.unconsumed_tail
                if decoder.eof:
                    piece, decoder = decoder.unused_data, None
        if decoder is not None:
            raise Unreachable("its response isn't compressed as it says")


class Client:
    """Sends requests over HTTP/1.1. Safe to be used by several threads, and in forked processes.

    A connection is used again within ``idle`` seconds, 0 for never, by requests to the same
    origin. Over HTTP/1.1 a server that sends a second response could be mistaken then, so use it
    only where responses name their request. ``resolve`` returns the addresses that may be connected
    to. ``connect_seconds`` limits the time for a connection in addition to that of the request.
    With ``accepts_gzip`` responses may be compressed, with ``uses_proxies`` the proxies of the
    environment are used.
    """

    def __init__(
        self,
        *,
        idle: float = 0.0,
        per_origin: int = 4,
        resolve: Resolve = every_address,
        connect_seconds: float = inf,
        accepts_gzip: bool = False,
        uses_proxies: bool = False,
    ) -> None:
        self._idle = IdleConnections(idle, per_origin, _MAX_IDLE_TOTAL)
        self._resolve = resolve
        self._connect_seconds = connect_seconds
        self._uses_proxies = uses_proxies
        coding = "gzip" if accepts_gzip else "identity"
        self._headers = [
            ("Accept-Encoding", coding),
            ("Connection", "keep-alive" if idle else "close"),
        ]

    @property
    def lost(self) -> int:
        """How many connections ended before their time: another server may respond since."""
        return self._idle.lost

    def request(
        self,
        method: str,
        url: str,
        *,
        seconds: float,
        most: int,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Return the response to a request, with a body of at most so many bytes.

        Raises ``Unreachable``: ``TimedOut`` after so many seconds, ``TooLarge`` for a larger body.
        """
        with self.stream(method, url, seconds=seconds, body=body, headers=headers) as stream:
            return Response(stream.status, stream.read(most), stream.headers)

    @contextmanager
    def stream(
        self,
        method: str,
        url: str,
        *,
        seconds: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[Stream]:
        """Send a request and read its response inside the block. Raises as ``request`` does."""
        parts = parts_of(url)
        if parts is None or parts.scheme not in PORTS or parts.hostname is None:
            raise Unreachable("its address is not one to call")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        origin = Origin(parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme])
        with unreachable_for(seconds):
            lines = [*host_header(origin), *self._headers, *(headers or {}).items()]
            if body is not None:
                lines.append(("Content-Length", str(len(body))))
            deadline = monotonic() + seconds
            connection, head = self._sent(origin, method, target, lines, body, deadline)
        try:
            yield Stream(head, connection, seconds)
        finally:
            self._put_back(connection)

    def close(self) -> None:
        """Close the connections that no request uses."""
        self._idle.close()

    def _sent(
        self,
        origin: Origin,
        method: str,
        target: str,
        headers: Headers,
        body: bytes | None,
        deadline: float,
    ) -> tuple[Connection, h11.Response]:
        connection = self._idle.take(origin) or self._connected(origin, deadline)
        try:
            return connection, connection.send(method, target, headers, body, deadline)
        except BaseException:
            connection.close()
            self._idle.note_loss()
            raise

    def _connected(self, origin: Origin, deadline: float) -> Connection:
        seconds = min(deadline - monotonic(), self._connect_seconds)
        deadline = monotonic() + seconds
        with unreachable_for(seconds):
            if self._uses_proxies:
                connection = connect_through_proxy(origin, deadline)
                if connection is not None:
                    return connection
            return connect(origin, self._resolve, deadline)

    def _put_back(self, connection: Connection) -> None:
        if connection.can_be_reused:
            self._idle.store(connection)
        else:
            connection.close()
            if not connection.is_complete:
                self._idle.note_loss()
