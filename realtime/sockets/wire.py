"""The server's side of a socket: uvicorn's protocol, with what sending to thousands needs in
addition.

An application finds it as ``scope["extensions"]["realtime.sockets.wire"]``. ASGI's ``send`` costs a
coroutine, an encoding and a frame for each client. Frames of a server aren't masked, so they are
stateless, and ``send_text`` writes them to the transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

import msgspec
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import Frame
from websockets.http11 import Request, Response

from backend.kernel.errors import CommandUnavailable, InternalError, ServiceError
from backend.logs.setup import get_logger

log = get_logger("sockets")

EXTENSION: Final = "realtime.sockets.wire"
_GOING_AWAY: Final = 1001
_INVALID_TEXT: Final = 1007
_TOO_LARGE: Final = 1009
# Seconds that a client may take to read its queue and to answer a close.
_GRACE: Final = 10.0
_SHUTDOWN_GRACE: Final = 2.0
# Limits: fragments of one message, pings in a minute.
_MOST_FRAGMENTS: Final = 1_000
_MOST_PINGS: Final = 600
_WRITE_SIZE: Final = 65_536  # bytes of frames that are written together


def text_frame(payload: bytes) -> bytes:
    """Return a server's text frame; ``payload`` is UTF-8."""
    size = len(payload)
    if size < 126:
        return bytes((0x81, size)) + payload
    if size < 65_536:
        return b"\x81\x7e" + size.to_bytes(2, "big") + payload
    return b"\x81\x7f" + size.to_bytes(8, "big") + payload


def _reject(
    reject: Callable[[HTTPStatus, str], Response], status: HTTPStatus | int, text: str
) -> Response:
    """Return the rejection of a handshake that HTTP or WebSocket doesn't allow, as REST's error."""
    response = reject(HTTPStatus(status), "")
    error: ServiceError
    if response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
        # The lines after the first are for people with a browser; values are from the client.
        reason = text.partition("\n")[0].encode("utf-8", "replace").decode()
        error = CommandUnavailable(reason or "The handshake is rejected.")
    else:
        error = InternalError("Internal server error.")
    response.body = msgspec.json.encode(error.body())
    del response.headers["Content-Type"], response.headers["Content-Length"]
    response.headers["Content-Type"] = "application/json"
    response.headers["Content-Length"] = str(len(response.body))
    return response


class FlushQueue:
    """The connections with frames to write in this iteration of an event loop."""

    _of_loops: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, FlushQueue]] = (
        WeakKeyDictionary()
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._wires: list[Wire] = []

    @classmethod
    def for_loop(cls, loop: asyncio.AbstractEventLoop) -> FlushQueue:
        """Return the instance of a loop."""
        flush_queue = cls._of_loops.get(loop)
        if flush_queue is None:
            flush_queue = cls._of_loops[loop] = cls(loop)
        return flush_queue

    def add(self, wire: Wire) -> None:
        """Flush a connection at the end of the iteration. One callback serves all of them."""
        if not self._wires:
            self._loop.call_soon(self._flush)
        self._wires.append(wire)

    def _flush(self) -> None:
        wires, self._wires = self._wires, []
        for wire in wires:
            try:
                wire.flush()
            except Exception as error:
                log.error("sending on a connection failed", exc_info=error)
                wire.transport.abort()


class Wire(WebSocketsSansIOProtocol):
    """One connection. Call its methods in the event loop; they never wait."""

    _flush_queue: FlushQueue
    _pings = 0
    _pings_since = 0.0
    # The frames of this iteration of the event loop, and their size in bytes.
    _unsent: list[bytes] | None = None
    _unsent_size = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn.reject = partial(_reject, self.conn.reject)  # type: ignore[method-assign]

    # -- for the application ----------------------------------------------------------------

    def send_text(self, payload: bytes) -> int:
        """Send a text message; return the number of bytes queued for the client.

        Frames of one iteration of the event loop are written together, since a system call costs
        more than everything else about a frame."""
        if self.close_sent or self.disconnected or self.transport.is_closing():
            return 0
        frame = text_frame(payload)
        if self._unsent is None:
            self._unsent = [frame]
            self._unsent_size = len(frame)
            self._flush_queue.add(self)
        else:
            self._unsent.append(frame)
            self._unsent_size += len(frame)
            if self._unsent_size > _WRITE_SIZE:
                self.flush()
        return self._unsent_size + int(self.transport.get_write_buffer_size())

    def flush(self) -> None:
        """Write the frames of this iteration to the transport."""
        unsent, self._unsent, self._unsent_size = self._unsent, None, 0
        if unsent and not self.transport.is_closing():
            self.transport.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def queued_bytes(self) -> int:
        """Return the number of bytes queued for the client."""
        return self._unsent_size + int(self.transport.get_write_buffer_size())

    async def drain(self) -> None:
        """Wait until the queue is nearly empty, or the client disconnects."""
        self.flush()
        await self.writable.wait()

    def close(self, code: int, reason: str = "") -> None:
        """Close after the queued frames. Clients that don't read are cut off after ``_GRACE``."""
        if self.close_sent or self.disconnected or self.transport.is_closing():
            return
        self.flush()
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        try:
            self.conn.send_close(code, reason)
        except InvalidState:  # the client has closed it already
            return
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(_GRACE, self.transport.abort)

    async def stop_sending(self) -> None:
        """Nothing to stop here (see ``asgi_queue.AsgiQueue.stop_sending``)."""

    # -- what uvicorn calls -----------------------------------------------------------------

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.conn.handshake_exc is None and hasattr(self, "scope"):
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[EXTENSION] = self
            self._flush_queue = FlushQueue.for_loop(self.loop)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            # Rejected with an HTTP response: uvicorn would log a missing response.
            self.handshake_complete = True

    def shutdown(self) -> None:
        """Close the connection with 1001, since the server stops."""
        if self.handshake_complete and not self.close_sent:
            self.close(_GOING_AWAY)
            self.transport.close()
            if self.close_timer is not None:
                self.close_timer.cancel()
                self.close_timer = self.loop.call_later(_SHUTDOWN_GRACE, self.transport.abort)
        else:
            super().shutdown()

    def keepalive_timeout(self) -> None:
        """Abort: a client that doesn't answer a ping wouldn't read a close frame."""
        self.pong_timer = None
        self.pending_ping_payload = None
        self.transport.abort()

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= _MOST_FRAGMENTS:
            self.close(_TOO_LARGE)
            return
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text":
            self.frames = [b"".join(self.frames)]
            try:
                self.frames[0].decode()
            except UnicodeDecodeError:
                # uvicorn would log a traceback for anything that a client sends.
                self.frames = []
                self.close(_INVALID_TEXT)
                return
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        now = monotonic()
        if now - self._pings_since > 60:
            self._pings, self._pings_since = 0, now
        self._pings += 1
        if self._pings > _MOST_PINGS or not self.writable.is_set():
            # Its answers would accumulate.
            self.transport.abort()
            return
        super().handle_ping()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # A dead peer's buffers must not live as long as its application's task.
        self.frames = []
        self._unsent, self._unsent_size = None, 0
