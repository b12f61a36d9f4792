"""One connection to a server over HTTP/1.1: one exchange after the other, each in its time.

h11 reads and writes the protocol; bytes that don't follow it are errors. The time of an exchange
covers all of it: a deadline for each read would let a server hold a thread with a byte now and
then.
"""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import suppress
from time import monotonic
from typing import Final, NamedTuple, TypeAlias

import h11

_PIECE: Final = 64 * 1024
_LARGEST_HEAD: Final = 64 * 1024
_MOST_INTERIM: Final = 100
"""Interim responses (status 1xx) before a response, at most."""

Headers: TypeAlias = list[tuple[str, str]]


class Origin(NamedTuple):
    """What a connection is made to."""

    scheme: str
    host: str
    port: int


class Connection:
    """A connection over a socket that is already open.

    ``can_be_reused`` is true between exchanges only: when the last response was read to the end
    that it announced, nothing followed it, and neither side has announced the end of the
    connection. ``is_complete`` says whether the last response was read to its end and nothing
    followed.
    """

    def __init__(self, raw: socket.socket, origin: Origin) -> None:
        self.origin = origin
        self.can_be_reused = False
        self._has_received = False
        self.is_complete = False
        self._socket = raw
        self._deadline = 0.0
        self._http = h11.Connection(h11.CLIENT)
        self._is_cut = False

    def send(
        self, method: str, target: str, headers: Headers, body: bytes | None, deadline: float
    ) -> h11.Response:
        """Send a request and return the head of its response, of any status but 1xx.

        Raises ``OSError``, ``ValueError`` or ``h11.ProtocolError``.
        """
        self.can_be_reused = self.is_complete = False
        self._has_received = self._is_cut = False
        self._deadline = deadline
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LARGEST_HEAD)
        events: list[h11.Event] = [h11.Request(method=method, target=target, headers=headers)]
        events += [h11.Data(data=body), h11.EndOfMessage()] if body else [h11.EndOfMessage()]
        data = b"".join(self._http.send(event) or b"" for event in events)
        try:
            self._send_all(data)
        except (BrokenPipeError, ConnectionResetError):
            # The server may have refused a request before its end, and says so in its response.
            self._is_cut = True
        for _ in range(_MOST_INTERIM + 1):
            event = self._next_event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                break
        raise h11.RemoteProtocolError("no final response")

    def next_piece(self) -> bytes | None:
        """Return the next bytes of the body, or None at its end. Raises as ``send`` does."""
        event = self._next_event()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if not isinstance(event, h11.EndOfMessage):
            raise h11.RemoteProtocolError("no end of the response")
        is_over = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        surplus, _ = self._http.trailing_data
        self.is_complete = not surplus and not self._is_cut
        self.can_be_reused = is_over and self.is_complete
        return None

    def is_quiet(self) -> bool:
        """Return whether nothing has arrived since the last response: no bytes and no end."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return False
        return not poll.poll(0)

    def speak_tls(self, context: ssl.SSLContext, deadline: float) -> None:
        """Do the handshake of TLS, for the host of the origin."""
        self._socket.settimeout(_left(deadline))
        self._socket = context.wrap_socket(self._socket, server_hostname=self.origin.host)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()

    def _next_event(self) -> h11.Event:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Event):
                return event
            if event is h11.PAUSED:
                raise h11.RemoteProtocolError("bytes of another protocol")
            self._http.receive_data(self._received())

    def _received(self) -> bytes:
        self._socket.settimeout(_left(self._deadline))
        data = self._socket.recv(_PIECE)
        if not data and not self._has_received:
            raise ConnectionResetError("closed without a response")
        self._has_received = True
        return data

    def _send_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._socket.settimeout(_left(self._deadline))
            view = view[self._socket.send(view[:_PIECE]) :]


def _left(deadline: float) -> float:
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError
    return left
