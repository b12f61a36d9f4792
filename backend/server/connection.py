"""The HTTP/1.1 protocol of one connection.

A request is queued when its last byte has arrived. A connection runs one request at a time;
pipelined requests wait, within limits. A request that is refused early (too large, malformed, too
slow) also ends the connection: the rest is read and discarded, never parsed, so a body can't be
taken for requests.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import Any, Final, cast

import httptools

from backend.errors import InvalidJSON, ObjectTooLarge, ServiceError
from backend.logs import get_logger
from backend.networks import client_network
from backend.server import handoff, heads
from backend.server.bodies import Body
from backend.server.core import Server
from backend.server.refusals import (
    MalformedRequest,
    Overloaded,
    TooManyAtOnce,
    TooSlow,
    too_large,
)
from backend.server.requests import Request
from backend.server.responses import CONTINUE, Response, error_response, framed
from backend.server.sending import Sender

_TRAILERS: Final = 8 * 1024
"""Bytes of the trailers of one body."""
_WRITE_HIGH: Final = 64 * 1024
"""The transport's high-water mark, in bytes."""
_COPIED: Final = 64 * 1024
"""Smaller bodies are copied behind their head, so that one write sends both."""
_OVERHEAD: Final = 64 * 1024
"""Bytes of chunk extensions and trailers without content between them."""
_DRAINED: Final = 256 * 1024 * 1024
"""A proxy's connection is dropped after so many bytes of a refused body."""
_CHUNKS: Final = 4 * 1024
_CHUNK_SIZE: Final = 64
"""A body may have ``_CHUNKS`` chunks, and one more for each ``_CHUNK_SIZE`` bytes: a chunk costs
the event loop about as much as a small request."""

log = get_logger("server")


class _Stop(Exception):
    """Stops the parser: the rest of the packet isn't parsed."""


class Connection(asyncio.Protocol):
    """One connection. Call everything in the event loop."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._limits = server.limits
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self.network = ""
        self._peer = ""
        self._is_proxied = False
        self._is_closed = False
        # Reading
        self._parser = httptools.HttpRequestParser(self)
        self._since = monotonic()  # start of the request that is being read, or of being idle
        self._is_in_head = False
        self._request: Request | None = None  # whose body is being read
        self._target = b""
        self._fields: list[heads.Field] = []
        self._head_size = 0
        self._method = "GET"
        self._raw: bytearray | None = None  # the head as received, while it may be a handshake
        self._is_handshake = False
        self._is_repeated_head = False
        self._unparsed = 0  # bytes since the head began, or since the body last grew
        self._is_packet_counted = False
        self._chunks = 0
        self._must_continue = False
        self._drained = 0
        self._drained_error: ServiceError | None = None
        self._is_reading_paused = False
        self._discards = False
        self._discarded_at = 0.0
        self._received_eof = False
        self._refused_early = False
        # Working and writing
        self._queue: deque[Request] = deque()
        self._current: Request | None = None
        self._refusal: ServiceError | None = None
        self._sender: Sender | None = None
        self._is_writing_paused = False
        self._written = 0
        self._unsent_since: float | None = None
        self._unsent_from = 0
        self._linger_until: float | None = None

    # -- what ``Connections`` calls ----------------------------------------------------------

    @property
    def idle_since(self) -> float | None:
        if self._current is not None or self._request is not None or self._queue:
            return None
        return self._since

    @property
    def unsent(self) -> int:
        return 0 if self._is_closed else self._transport.get_write_buffer_size()

    def drop(self) -> None:
        if not self._is_closed:
            self._transport.abort()

    def check(self, now: float) -> None:
        limits = self._limits
        if self.unsent:
            self._check_reader(now)
            if self._linger_until is not None:  # lingering starts when the response is sent
                self._linger_until = now + limits.linger_time
                self._discarded_at = now
        elif self._linger_until is not None:
            if now > self._linger_until or now - self._discarded_at > limits.linger_idle:
                self._transport.abort()
        elif self._current is not None or self._refusal is not None:
            return
        elif self._request is not None:
            self._check_body(self._request, now - self._since)
        elif self._is_in_head:
            if now - self._since > limits.head_time:
                self._refuse(TooSlow("The request's headers took too long."))
        elif now - self._since > limits.idle_time:
            self._transport.close()
        if not self.unsent:
            self._unsent_since = None

    def _check_body(self, request: Request, elapsed: float) -> None:
        size = self._drained if request.body is None else request.body.size
        if elapsed > self._limits.grace and size < self._limits.min_rate * elapsed:
            if self._is_proxied:  # see _drain
                self._transport.abort()
                return
            self._refuse(TooSlow("The request's body arrives too slowly."))

    def _check_reader(self, now: float) -> None:
        taken = self._written - self.unsent
        if self._unsent_since is None:
            self._unsent_since, self._unsent_from = now, taken
            return
        elapsed = now - self._unsent_since
        if (
            elapsed > self._limits.grace
            and taken - self._unsent_from < self._limits.min_rate * elapsed
        ):
            self._transport.abort()

    # -- what the event loop calls -----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._peer = peer[0] if isinstance(peer, tuple) else ""
        self._is_proxied = self._server.is_proxy(self._peer)
        self.network = "" if self._is_proxied else client_network(self._peer)
        transport.set_write_buffer_limits(_WRITE_HIGH)
        if self._server.is_stopping:
            transport.close()
        elif not self._server.connections.add(self):
            # Lingering connections would use up file descriptors in a flood.
            self._discards = True
            self._send(error_response(TooManyAtOnce()), "GET", "1.1", keep_alive=False)
            transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_closed = True
        self._server.connections.remove(self)
        for request in (*self._queue, self._request):
            if request is not None:
                self._free(request)
        self._queue.clear()
        self._request = None
        if self._current is not None:
            self._current.is_abandoned = True
        if self._sender is not None:
            self._sender.abandon()
            self._sender = None
        self._raw = None

    def data_received(self, data: bytes) -> None:
        if self._discards:
            self._discarded_at = monotonic()
            return
        is_early = self._current is not None
        if self._request is None and not self._is_in_head:
            self._since = monotonic()
            self._is_in_head = True
            self._unparsed = 0
            self._raw = bytearray()
        if self._raw is not None:
            self._raw += data
        self._is_packet_counted = True
        self._parse(data)
        if self._is_closed or self._discards:
            return
        if self._is_packet_counted:
            self._count_unparsed(len(data))
        if is_early and self._current is not None and not self._is_reading_paused:
            # Pipelined: the rest can wait until the current request is answered.
            self._is_reading_paused = True
            self._transport.pause_reading()

    def _count_unparsed(self, size: int) -> None:
        """Limit the bytes that the parser buffers or skips without a callback.

        The packet in which the head began or the body grew isn't counted, because it may hold
        other parts of the request.
        """
        self._unparsed += size
        if self._is_in_head:
            if self._unparsed > self._limits.head_size:
                self._refuse(_head_too_large())
        elif self._request is not None and self._unparsed > _OVERHEAD:
            self._refuse(InvalidJSON("The request body has too much between its chunks."))

    def _parse(self, data: bytes) -> None:
        rest: bytes | None = data
        while rest is not None:
            rest = self._feed(rest)

    def _feed(self, data: bytes) -> bytes | None:
        """Parse data; return what has to be parsed next, or None."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._is_handshake:
                self._hand_over()
            elif not self._discards:
                return self._without_upgrade() + data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as wrapped:
            error = wrapped.__context__
            if isinstance(error, _Stop):
                return None
            if isinstance(error, ServiceError):
                self._refuse(error)
            else:
                log.error("a request can't be read", exc_info=error)
                self._transport.abort()
        except httptools.HttpParserInvalidMethodError:
            self._refuse(MalformedRequest("The request's method is unknown.", status=501))
        except httptools.HttpParserError:
            if self._request is not None:
                self._refuse(InvalidJSON("The request body is not framed correctly."))
            else:
                self._refuse(MalformedRequest("The request is malformed."))
        return None

    def _without_upgrade(self) -> bytes:
        """Ignore an ``Upgrade`` to a protocol other than WebSocket.

        httptools ends the message before its body. A new parser reads the body; it needs a head
        with the body's framing, which this returns.
        """
        self._parser = httptools.HttpRequestParser(self)
        self._is_repeated_head = True
        length = None if self._request is None else heads.framing(self._request.environ)
        if length is None:
            return b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        return b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % length

    def eof_received(self) -> bool:
        is_due = self._current is not None or self._queue or self._refusal is not None
        if self._linger_until is not None or not is_due:
            return False  # asyncio closes the transport once its buffer is sent
        # A client may close its side after the request, and wait for the response.
        self._discards = self._received_eof = True
        return True

    def pause_writing(self) -> None:
        self._is_writing_paused = True
        self._server.connections.set_full(self, True)
        if self._sender is not None:
            self._sender.pause()

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self._server.connections.set_full(self, False)
        if self._sender is not None:
            self._sender.resume()
        else:
            self._advance()

    # -- what the parser calls ---------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._is_repeated_head:
            return
        if self._discards or len(self._queue) >= self._limits.pipelined:
            # Complete requests are answered, then the connection ends.
            if self._queue:
                self._queue[-1].keep_alive = False
            self._discards = self._refused_early = True
            raise _Stop
        self._is_in_head = True
        self._method = "GET"
        self._target = b""
        self._fields = []
        self._head_size = self._unparsed = 0
        self._is_packet_counted = False

    def on_url(self, piece: bytes) -> None:
        if self._is_repeated_head:
            return
        self._target += piece
        self._count_head(len(piece))
        if len(self._target) > self._limits.target_size:
            raise MalformedRequest("The request target is too long.", status=414)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_repeated_head:
            return
        self._count_head(len(name) + len(value) + 4)
        if not self._is_in_head:  # a trailer, which is ignored
            if self._head_size > _TRAILERS:
                raise _head_too_large()
            return
        if len(self._fields) >= self._limits.head_fields:
            raise _head_too_large()
        self._fields.append((name, value))

    def _count_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > self._limits.head_size:
            raise _head_too_large()

    def on_headers_complete(self) -> None:
        if self._is_repeated_head:
            self._is_repeated_head = False
            return
        self._is_in_head = False
        self._head_size = self._unparsed = self._chunks = 0
        self._is_packet_counted = False
        parser, server = self._parser, self._server
        self._method = parser.get_method().decode("ascii")
        version = parser.get_http_version()
        if version not in ("1.0", "1.1"):
            raise MalformedRequest("The HTTP version isn't supported.", status=505)
        environ = heads.environ_of(
            server.environ,
            self._method,
            self._target,
            version,
            self._fields,
            is_proxied=self._is_proxied,
        )
        environ["REMOTE_ADDR"] = self._peer
        self._fields = []
        request = Request(
            server.application,
            self,
            environ,
            client_network(server.client_address(environ)),
            keep_alive=parser.should_keep_alive(),
        )
        length = heads.framing(environ)
        self._request = request
        self._is_handshake = (
            parser.should_upgrade() and length == 0 and _is_websocket(self._method, environ)
        )
        if not self._is_handshake:
            self._raw = None
        if length != 0:
            self._begin_body(request, length)

    def _begin_body(self, request: Request, length: int | None) -> None:
        server, environ = self._server, request.environ
        limit = server.body_limit(environ)
        expects = environ.get("HTTP_EXPECT")
        if expects is not None and expects.lower() != "100-continue":
            raise MalformedRequest("The only supported expectation is 100-continue.", status=417)
        if length is not None and length > limit:
            error = too_large(limit)
            if not self._drain(request, error):
                self._refuse_body(request, error)
                raise _Stop
        else:
            request.body = Body(request.address, limit, self._limits.body_memory, server.spool)
        self._must_continue = expects is not None and request.version != "1.0"
        if not self._queue and self._current is None:
            self._continue()

    def _continue(self) -> None:
        """Send 100 Continue, if the client waits for it before it sends the body."""
        if self._must_continue:
            self._must_continue = False
            self._write(CONTINUE)

    def on_chunk_header(self) -> None:
        self._chunks += 1
        request = self._request
        if (
            self._chunks > _CHUNKS
            and request is not None
            and request.body is not None
            and self._chunks > _CHUNKS + request.body.size // _CHUNK_SIZE
        ):
            raise InvalidJSON("The request body has too many small chunks.")

    def on_body(self, piece: bytes) -> None:
        request = self._request
        self._must_continue = False
        self._unparsed = 0
        self._is_packet_counted = False
        if request is None:
            return
        body = request.body
        if body is None:
            self._drained += len(piece)
            if self._drained > _DRAINED:
                self._transport.abort()
            return
        try:
            if body.size + len(piece) > body.limit:
                raise too_large(body.limit)
            body.append(piece)
        except ServiceError as error:
            if self._drain(request, error):
                return
            self._refuse_body(request, error)
            raise _Stop from None

    def on_message_complete(self) -> None:
        request, self._request = self._request, None
        if request is None or self._parser.should_upgrade():
            self._request = request  # a handshake, or a body that a new parser reads
            return
        if self._drained_error is not None:
            error, self._drained_error = self._drained_error, None
            self._refuse_body(request, error)
            raise _Stop
        body = request.body
        if body is not None:
            request.environ["CONTENT_LENGTH"] = str(body.size)
            request.environ.pop("HTTP_TRANSFER_ENCODING", None)
            request.environ.pop("HTTP_EXPECT", None)
        self._queue.append(request)
        if not request.keep_alive:
            self._discards = True
        self._advance()
        if self._discards:
            raise _Stop

    # -- upgrades ----------------------------------------------------------------------------

    def _hand_over(self) -> None:
        """Give the connection and its WebSocket handshake to the realtime process."""
        self._request, raw = None, self._raw
        if self._queue or self._current is not None or self.unsent or raw is None:
            self._refuse(MalformedRequest("A handshake can't follow another request."))
            return
        if len(raw) > handoff.MOST_BYTES:
            self._refuse(MalformedRequest("Too much was sent before the handshake's answer."))
            return
        self._transport.pause_reading()
        self._is_reading_paused = True
        self._discards = True
        descriptor = self._transport.get_extra_info("socket").fileno()
        if self._server.pass_on(descriptor, bytes(raw)):
            self._transport.abort()
        else:
            self._refuse(Overloaded())

    # -- work --------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Start the next request. Without one, send a pending refusal or resume reading.

        No effect while a request runs or the transport is full.
        """
        if self._is_closed or self._current is not None or self._is_writing_paused:
            return
        if self._queue:
            request = self._current = self._queue.popleft()
            self._server.submit(request)
            return
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            self._send(error_response(refusal), self._method, "1.1", keep_alive=False)
            self._linger()
        elif not self._discards:
            if self._request is not None:
                self._continue()
            if self._is_reading_paused:
                self._is_reading_paused = False
                self._transport.resume_reading()

    def answered(self, request: Request, response: Response) -> None:
        """Send the response of the current request."""
        if self._is_closed or request is not self._current:
            if response.close is not None:
                self._server.discard(response)
            return
        keep_alive = request.keep_alive and not self._server.is_stopping
        request.keep_alive = keep_alive
        closes = self._send(response, request.method, request.version, keep_alive=keep_alive)
        if self._is_closed or self._current is not request:
            return
        if closes:
            request.keep_alive = False
        if self._sender is None:
            self._sent(complete=True)

    def _send(self, response: Response, method: str, version: str, *, keep_alive: bool) -> bool:
        framing = framed(response, method, version, keep_alive=keep_alive)
        if not framing.has_body:
            self._write(framing.head)
            if response.close is not None:
                self._server.discard(response)
            return framing.closes
        if response.rest is None:
            if len(response.body) < _COPIED:
                self._write(framing.head + response.body)
            else:  # uvloop sends both writes with one system call
                self._write(framing.head)
                self._write(response.body)
            return framing.closes
        self._write(framing.head)
        self._sender = Sender(
            self._server.loop,
            self._server.executor,
            response,
            self._write,
            self._sent_rest,
            length=framing.length,
            is_chunked=framing.is_chunked,
        )
        self._sender.begin()
        return framing.closes

    def _write(self, data: bytes) -> None:
        self._written += len(data)
        self._transport.write(data)

    def _sent_rest(self, complete: bool) -> None:
        self._sender = None
        self._sent(complete=complete)

    def _sent(self, *, complete: bool) -> None:
        """End a response whose last byte was given to the transport."""
        request, self._current = self._current, None
        self._since = monotonic()
        if not complete:
            self._transport.abort()
        elif (request is not None and not request.keep_alive) or (
            (self._received_eof or self._server.is_stopping) and not self._queue
        ):
            # A part of the body, or a pipelined request, may be unread.
            if self._is_reading_paused or self._refused_early:
                self._linger()
            else:
                self._transport.close()
        else:
            self._advance()

    # -- refusals ----------------------------------------------------------------------------

    def _drain(self, request: Request, error: ServiceError) -> bool:
        """Delay the refusal of a proxy's request until its body is read and discarded.

        A proxy that receives the response while it sends the body may take the rest of the body
        for the client's next requests. Go's ``net/http`` (in Caddy) sometimes does. Returns False
        for clients that aren't proxies.
        """
        if not self._is_proxied:
            return False
        self._drained = 0 if request.body is None else request.body.size
        self._drained_error = error
        self._free(request)
        request.body = None
        return True

    def _refuse_body(self, request: Request, error: ServiceError) -> None:
        """Refuse a request before its body has arrived.

        The application answers ``ObjectTooLarge`` itself where ``answers_too_large`` says so: it
        sees the announced length, and the response has the headers of its other errors.
        """
        self._request = None
        self._free(request)
        if self._server.answers_too_large(request.environ) and isinstance(error, ObjectTooLarge):
            request.body = None
            limit = self._server.body_limit(request.environ)
            announced = request.environ.get("CONTENT_LENGTH")
            request.environ["CONTENT_LENGTH"] = announced or str(limit + 1)
            request.environ.pop("HTTP_TRANSFER_ENCODING", None)
            request.keep_alive = False
            self._refused_early = self._discards = True
            self._queue.append(request)
            self._advance()
            return
        self._refuse(error)

    def _refuse(self, error: ServiceError) -> None:
        """Send an error after the pending responses, and end the connection."""
        if self._is_closed or self._refusal is not None or self._linger_until is not None:
            return
        request, self._request = self._request, None
        if request is not None:
            self._free(request)
        self._refusal = error
        self._discards = self._refused_early = True
        self._is_in_head = False
        self._raw = None
        self._advance()

    def _linger(self) -> None:
        """Read and discard what the client still sends, so that it sees the response."""
        if self._received_eof:
            self._transport.close()
            return
        now = monotonic()
        self._discards = True
        self._linger_until = now + self._limits.linger_time
        self._discarded_at = now
        if self._transport.can_write_eof():
            self._transport.write_eof()
        if self._is_reading_paused:
            self._is_reading_paused = False
            self._transport.resume_reading()

    def shut_down(self) -> None:
        if self._current is None and not self._queue and self._request is None:
            self._transport.close()

    def _free(self, request: Request) -> None:
        if request.body is not None:
            request.body.close()


def _is_websocket(method: str, environ: dict[str, Any]) -> bool:
    return method == "GET" and environ.get("HTTP_UPGRADE", "").strip(" \t").lower() == "websocket"


def _head_too_large() -> MalformedRequest:
    return MalformedRequest("The request's headers are too large.", status=431)
