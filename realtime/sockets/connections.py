"""One client's connection: what the sockets of the event channel and of live queries share.

Subclasses implement ``on_open``, ``on_message`` and ``on_close``, and send with ``enqueue``, which
never waits: a client that reads too slowly is closed, without effect on others.

Close codes: 1000 closed by the client, 1001 the process stops (reconnect), 1008 invalid messages,
1009 a message that is too large, 1011 an internal error, 1013 too slow (reconnect).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic, time
from typing import Any, ClassVar, Final
from urllib.parse import parse_qs

import msgspec
from channels.consumer import AsyncConsumer
from structlog.contextvars import bind_contextvars

from backend.http.context import request_id_of
from backend.kernel.errors import ServiceError
from backend.kernel.texts.encoding import encode_text
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from realtime.process import admission, process
from realtime.sockets.asgi_queue import AsgiQueue
from realtime.sockets.wire import EXTENSION, Wire

GOING_AWAY: Final = 1001
POLICY: Final = 1008
TOO_LARGE: Final = 1009
INTERNAL_ERROR: Final = 1011
TRY_AGAIN: Final = 1013

_MOST_PARAMETERS: Final = 100
_LONGEST_PING: Final = 64
_LONGEST_REASON: Final = 120  # bytes
_MINUTE: Final = 60.0
_MESSAGE: Final = 128  # bytes of overhead of a waiting message
_MOST_PENDING: Final = 8
"""The limit on the total size of pending messages, in messages of the greatest size."""

log = get_logger("sockets")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Socket(AsyncConsumer):
    """One client. Everything here is called in the event loop and must not wait in it."""

    # The name of the kind in the status of a process.
    kind: ClassVar[str] = "socket"
    # Whether WS_REQUIRE_KEY applies: not where clients send their keys in a message.
    keys_in_handshake: ClassVar[bool] = True

    address: str  # of the client, as the trusted proxy reports it
    query: Mapping[str, list[str]]  # of the handshake's URL, decoded
    headers: Mapping[str, str]  # names in lower case
    request_id: str = ""  # of the handshake, and of all that the client requests
    opened_at: float  # epoch seconds
    is_open: bool = False

    _process: process.Process
    _outlet: Wire | AsgiQueue
    _most_queued: int
    _queued_bytes: int = 0  # bytes, at the last ``enqueue``
    # Of the current minute: messages, and units of junk.
    _minute: float = 0.0
    _messages: int = 0
    _junk: int = 0
    _size: int = 0
    # Messages that arrived while another was handled, and the bytes that they take.
    _pending: deque[tuple[str | bytes, int]]
    _pending_size: int = 0
    _handling: asyncio.Task[None] | None = None

    # -- for subclasses ---------------------------------------------------------------------

    async def before_accept(self) -> None:
        """Called before the handshake is accepted. Raise ``admission.Refusal`` to reject; neither
        ``on_open`` nor ``on_close`` is called then."""

    async def on_open(self) -> None:
        """Called when the client is connected: frames may be enqueued from now on."""

    async def on_message(self, text: str) -> None:
        """Called for each text message within the limits of size and rate.

        The next message is handled when this returns, so messages of one client are in order.
        ``on_close`` may be called meanwhile."""
        self.count_junk()

    async def on_close(self) -> None:
        """Called once when the connection is closed by either side, if ``on_open`` was called.

        Cancel what ``on_message`` waits for; it is awaited afterwards."""

    def count_junk(self) -> None:
        """Count an invalid message against the client's budget."""
        self._junk += 1 + self._size // 1024
        if self._junk > service_settings.WS_JUNK_PER_MINUTE:
            self.close_with(POLICY, "too many messages that make no sense")

    def enqueue(self, frame: str | bytes) -> None:
        """Send a text frame (``bytes`` are UTF-8). Never waits.

        A client with too much in its queue is closed with 1013; after a close nothing is sent."""
        if not self.is_open:
            return
        payload = encode_text(frame) if type(frame) is str else frame
        self._queued_bytes = self._outlet.send_text(payload)  # type: ignore[arg-type]
        if self._queued_bytes > self._most_queued:
            self.close_with(TRY_AGAIN, "too slow")

    @property
    def is_behind(self) -> bool:
        """Whether the client's queue is half full: defer what can be sent later."""
        half = self._most_queued // 2
        return self._queued_bytes > half and self._outlet.queued_bytes() > half

    async def drain(self) -> None:
        """Wait until most of the queue is sent, or the client disconnects.

        For pages of missed events; live events don't wait."""
        await self._outlet.drain()

    def close_with(self, code: int, reason: str = "") -> None:
        """Close the connection after the queued frames. Never waits; later calls do nothing.

        ``reason`` is for the client, and cut to the size of a close frame."""
        if self.is_open:
            self.is_open = False
            self._process.count_closed(code)
            truncated = encode_text(reason)[:_LONGEST_REASON].decode(errors="ignore")
            self._outlet.close(code, truncated)

    # -- ASGI -------------------------------------------------------------------------------

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection. Replaces Channels' dispatch of messages, which starts tasks and
        checks database connections in a thread for each of them."""
        self.scope = scope
        self.headers = admission.headers_of(scope)
        self.address = admission.address_of(scope, self.headers)
        self.request_id = request_id_of(self.headers.get("x-request-id", ""))
        bind_contextvars(request_id=self.request_id)
        if (await receive())["type"] != "websocket.connect":
            return
        current = process.Process.current()
        try:
            self.query = _query(scope)
            current.admission.admit(self.address, self.headers, self.query, self.keys_in_handshake)
        except admission.Refusal as refusal:
            await admission.reject(scope, send, refusal)
            return
        try:
            await self.before_accept()
            await self._serve(current, receive, send)
        except admission.Refusal as refusal:
            await admission.reject(scope, send, refusal)
        finally:
            current.admission.release(self.address)

    async def _serve(self, current: process.Process, receive: Receive, send: Send) -> None:
        wire = self.scope.get("extensions", {}).get(EXTENSION)
        await send({"type": "websocket.accept"})
        self._process = current
        self._outlet = wire or AsgiQueue(send)
        self._most_queued = service_settings.WS_SEND_QUEUE
        self._pending = deque()
        self._minute = monotonic()
        self.opened_at = time()
        self.is_open = True
        current.sockets.add(self)
        try:
            await self._open()
            await self._read(receive)
        except asyncio.CancelledError:
            self.close_with(GOING_AWAY)
            if self._handling is not None:
                self._handling.cancel()
            raise
        finally:
            self.is_open = False
            current.sockets.discard(self)
            current.ended += 1
            await self.on_close()
            if self._handling is not None:
                await asyncio.wait([self._handling])
            self._pending.clear()
            self._release_pending(self._pending_size)
            await self._outlet.stop_sending()

    async def _open(self) -> None:
        try:
            await self.on_open()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        log.error("a socket failed", kind=self.kind, exc_info=error)
        self.close_with(INTERNAL_ERROR)

    async def _read(self, receive: Receive) -> None:
        """Read until the client disconnects, also while a message is handled."""
        while True:
            message = await receive()
            if message["type"] != "websocket.receive":
                return
            text = message.get("text")
            payload: str | bytes = (message.get("bytes") or b"") if text is None else text
            if self.is_open and self._within_budget(len(payload)):
                self._queue(payload)

    def _queue(self, payload: str | bytes) -> None:
        """Queue a message. A client without waiting messages can always send one."""
        size = 0
        if self._handling is None:
            self._handling = asyncio.create_task(self._handle_all())
        else:
            size = len(payload) + _MESSAGE
            most = _MOST_PENDING * (service_settings.WS_MESSAGE_SIZE + _MESSAGE)
            if self._pending_size + size > most:
                self.close_with(POLICY, "too much at once")
                return
            try:
                self._process.pending_messages.reserve(self.address, size)
            except ServiceError as error:
                self.close_with(TRY_AGAIN, error.message)
                return
        self._pending_size += size
        self._pending.append((payload, size))

    async def _handle_all(self) -> None:
        try:
            while self._pending and self.is_open:
                payload, size = self._pending.popleft()
                self._release_pending(size)
                await self._handle(payload)
        finally:
            self._handling = None

    def _release_pending(self, size: int) -> None:
        self._pending_size -= size
        self._process.pending_messages.release(self.address, size)

    async def _handle(self, payload: str | bytes) -> None:
        self._size = len(payload)
        try:
            if isinstance(payload, bytes):
                self.count_junk()
            elif _is_ping(payload):
                self.enqueue(b"pong" if payload == "ping" else b'{"event":"pong"}')
            else:
                await self.on_message(payload)
        except MemoryError:
            # Without a traceback, whose making takes more of it.
            log.error("a socket failed for want of memory", kind=self.kind)
            self.close_with(TRY_AGAIN, "no memory")
        except Exception as error:
            self._fail(error)

    def _within_budget(self, size: int) -> bool:
        now = monotonic()
        if now - self._minute > _MINUTE:
            self._minute, self._messages, self._junk = now, 0, 0
        self._messages += 1
        if size > service_settings.WS_MESSAGE_SIZE:
            self.close_with(TOO_LARGE)
        elif self._messages > service_settings.WS_MESSAGES_PER_MINUTE:
            self.close_with(POLICY, "too many messages")
        return self.is_open


def _query(scope: Mapping[str, Any]) -> dict[str, list[str]]:
    try:
        text = scope.get("query_string", b"").decode()
        return parse_qs(
            text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS
        )
    except ValueError:
        raise admission.Refusal(400, 107, "the query string can't be read") from None


def _is_ping(text: str) -> bool:
    """``ping``, or ``{"event":"ping"}`` however it is spaced."""
    if text == "ping":
        return True
    if len(text) > _LONGEST_PING or '"ping"' not in text:
        return False
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return content == {"event": "ping"}
