"""The server's side of a socket: uvicorn's protocol, with what sending to thousands needs in
addition.

An application finds it as ``scope["extensions"]["realtime.sockets.wire"]``. ASGI's ``send`` costs a
coroutine, an encoding and a frame for each client. Frames of a server aren't masked, so they are
stateless, and ``text`` writes them to the transport.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import Frame
from websockets.http11 import Request

from backend.logs.setup import get_logger

log = get_logger("sockets")

EXTENSION: Final = "realtime.sockets.wire"
_GOING_AWAY: Final = 1001
_NO_TEXT: Final = 1007
_TOO_LARGE: Final = 1009
# Seconds that a client may take to read its queue and to answer a close.
_GRACE: Final = 10.0
_GRACE_AT_THE_END: Final = 2.0
# Limits: fragments of one message, pings in a minute.
_MOST_FRAGMENTS: Final = 1_000
_MOST_PINGS: Final = 600
_TOGETHER: Final = 65_536  # bytes of frames that are written together


def text_frame(payload: bytes) -> bytes:
    """Return a server's text frame; ``payload`` is UTF-8."""
    size = len(payload)
    if size < 126:
        return bytes((0x81, size)) + payload
    if size < 65_536:
        return b"\x81\x7e" + size.to_bytes(2, "big") + payload
    return b"\x81\x7f" + size.to_bytes(8, "big") + payload


class Outgoing:
    """The connections with frames to write in this turn of an event loop."""

    _of_loops: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, Outgoing]] = (
        WeakKeyDictionary()
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._wires: list[Wire] = []

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> Outgoing:
        """Return the instance of a loop."""
        outgoing = cls._of_loops.get(loop)
        if outgoing is None:
            outgoing = cls._of_loops[loop] = cls(loop)
        return outgoing

    def add(self, wire: Wire) -> None:
        """Flush it at the end of the turn. One callback for all is cheaper than one for each."""
        if not self._wires:
            self._loop.call_soon(self._flush)
        self._wires.append(wire)

    def _flush(self) -> None:
        wires, self._wires = self._wires, []
        for wire in wires:
            try:
                wire.flush()
            except Exception as error:
                log.error("nothing can be sent on a connection", exc_info=error)
                wire.transport.abort()


class Wire(WebSocketsSansIOProtocol):
    """One connection. Call its methods in the event loop; they never wait."""

    _outgoing: Outgoing
    _pings = 0
    _pings_since = 0.0
    # The frames of this turn of the event loop, and their bytes.
    _unsent: list[bytes] | None = None
    _unsent_size = 0

    # -- for the application ----------------------------------------------------------------

    def text(self, payload: bytes) -> int:
        """Send a text; return the bytes that wait for the client after that.

        Frames of one turn of the event loop are written together, since a system call costs more
        than everything else about a frame."""
        if self.close_sent or self.disconnected or self.transport.is_closing():
            return 0
        frame = text_frame(payload)
        if self._unsent is None:
            self._unsent = [frame]
            self._unsent_size = len(frame)
            self._outgoing.add(self)
        else:
            self._unsent.append(frame)
            self._unsent_size += len(frame)
            if self._unsent_size > _TOGETHER:
                self.flush()
        return self._unsent_size + int(self.transport.get_write_buffer_size())

    def flush(self) -> None:
        """Write the frames of this turn to the transport."""
        unsent, self._unsent, self._unsent_size = self._unsent, None, 0
        if unsent and not self.transport.is_closing():
            self.transport.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def waiting(self) -> int:
        """Return the bytes that wait for the client."""
        return self._unsent_size + int(self.transport.get_write_buffer_size())

    async def drain(self) -> None:
        """Wait until the queue is nearly empty, or the client is gone."""
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
        except InvalidState:  # the client was faster
            return
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(_GRACE, self.transport.abort)

    async def finished(self) -> None:
        """Nothing to stop here (see ``asgi_queue.Queued.finished``)."""

    # -- what uvicorn calls -----------------------------------------------------------------

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.conn.handshake_exc is None and hasattr(self, "scope"):
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[EXTENSION] = self
            self._outgoing = Outgoing.of(self.loop)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            # Rejected with an HTTP response: uvicorn would log a missing response.
            self.handshake_complete = True

    def shutdown(self) -> None:
        """The server stops: the client may connect again at once, elsewhere or later."""
        if self.handshake_complete and not self.close_sent:
            self.close(_GOING_AWAY)
            self.transport.close()
            if self.close_timer is not None:
                self.close_timer.cancel()
                self.close_timer = self.loop.call_later(_GRACE_AT_THE_END, self.transport.abort)
        else:
            super().shutdown()

    def keepalive_timeout(self) -> None:
        """No answer to a ping: the client wouldn't read a close either."""
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
                self.close(_NO_TEXT)
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
