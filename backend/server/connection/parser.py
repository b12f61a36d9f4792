"""Bytes from a client to requests, within limits. httptools parses all heads that aren't cached
(``head_cache``). Nothing is sent here.

The parser stops at the first request that is refused: nothing behind it is parsed, so a body can't
be taken for requests.
"""

from __future__ import annotations

from typing import Any, Final

import httptools

from backend.kernel.errors import InvalidJSON, ObjectTooLarge, ServiceError
from backend.kernel.networks import client_network
from backend.logs.setup import get_logger
from backend.server.connection.states import (
    BODY,
    DONE,
    DRAINING,
    HANDSHAKE,
    HEAD,
    IDLE,
    REFUSED,
    State,
)
from backend.server.context import Server
from backend.server.refusals import MalformedRequest, Overloaded, too_large
from backend.server.requests import heads
from backend.server.requests.bodies import Body
from backend.server.requests.drain import Drain
from backend.server.requests.head_cache import CachedHead, Packet, is_cacheable, split_packet
from backend.server.requests.request import Receiver, Request

_TRAILERS: Final = 8 * 1024
"""Bytes of the trailers of one body."""
_OVERHEAD: Final = 64 * 1024
"""Bytes of chunk extensions and trailers without content between them."""
_CHUNKS: Final = 4 * 1024
_CHUNK_SIZE: Final = 64
"""A body may have ``_CHUNKS`` chunks, and one more for each ``_CHUNK_SIZE`` bytes: a chunk costs
the event loop about as much as a small request."""

log = get_logger("server")


class _Stop(Exception):
    """Stops the parser: the rest of the packet isn't parsed."""


class RequestParser:
    """The requests of one connection, one after the other.

    ``state.reading`` follows what is being read. httptools calls the ``on_…`` methods.
    """

    def __init__(
        self, server: Server, receiver: Receiver, state: State, peer: str, *, is_proxied: bool
    ) -> None:
        self._server = server
        self._limits = server.limits
        self._receiver = receiver
        self._state = state
        self._peer = peer
        self._is_proxied = is_proxied
        self._parser = httptools.HttpRequestParser(self)
        self.method = "GET"
        """The method of the current or last request. GET until its headers are complete."""
        self.expects_continue = False
        """Whether the client waits for 100 Continue before it sends the body."""
        self._request: Request | None = None  # whose body is being read
        self._drain: Drain | None = None
        self._target = b""
        self._fields: list[heads.Field] = []
        self._head_size = 0  # bytes of the head, then of the trailers
        self._raw: bytes | bytearray | None = None  # the head, while it may be a handshake's
        self._is_repeated_head = False  # the parser reads the head of ``_without_upgrade``
        self._unparsed = 0  # bytes since the head began, or since the body last grew
        self._has_progress = False  # whether this packet began or ended a head, or continued a body
        self._chunks = 0
        self._packet: Packet | None = None  # what is parsed, if its head may be cached

    @property
    def received(self) -> int:
        """Bytes of the current body."""
        if self._drain is not None:
            return self._drain.size
        request = self._request
        return 0 if request is None or request.body is None else request.body.size

    def feed(self, data: bytes) -> None:
        """Parse the next bytes. ``state.is_parsing`` has to be true."""
        reading = self._state.reading
        if reading is IDLE:
            packet = split_packet(data)
            if packet is not None:
                head = self._server.heads.get(self._peer, packet)
                if head is not None and self._receive_cached(packet, head):
                    return
            self._packet = packet
            self._state.read(HEAD)
            self._unparsed = 0
            self._raw = data
        elif self._raw is not None:
            if type(self._raw) is bytes:
                self._raw = bytearray(self._raw)
            self._raw += data
        self._has_progress = False
        remaining: bytes | None = data
        while remaining is not None:
            remaining = self._feed(remaining)
        if not self._has_progress and self._state.is_parsing:
            self._count_unparsed(len(data))

    def _receive_cached(self, packet: Packet, head: CachedHead) -> bool:
        """Receive a request whose header lines are cached.

        False if the packet must be parsed: where something is wrong, the parser sends the refusal.
        """
        server, limits = self._server, self._limits
        if len(packet.target) > limits.target_size or packet.head_size > limits.head_size:
            return False
        environ = dict(head.environ)
        environ["REQUEST_METHOD"] = method = packet.method.decode("ascii")
        try:
            heads.set_target(environ, packet.target)
        except MalformedRequest:
            return False
        request = Request(
            server.application, self._receiver, environ, head.network, keep_alive=True
        )
        if packet.body:
            environ["CONTENT_LENGTH"] = str(len(packet.body))
            limit = server.body_limit(environ)
            if len(packet.body) > limit:
                return False
            request.body = Body(head.network, limit, limits.body_memory, server.spool)
            try:
                request.body.append(packet.body)
            except Overloaded:
                request.free()
                return False
        # Last, because it ends the connection if too many requests wait.
        if self._receiver.may_begin():
            self.method = method
            self._receiver.receive(request)
        else:
            request.free()
        return True

    def free_request(self) -> None:
        """Free the request that is being read."""
        request, self._request = self._request, None
        if request is not None:
            request.free()
        self._drain = None
        self._raw = None
        self._packet = None

    def close(self) -> None:
        """Free everything. ``feed`` must not be called again."""
        self.free_request()
        # httptools and the connection refer to this object: otherwise only a garbage collection
        # would free them.
        del self._parser, self._receiver

    def _count_unparsed(self, size: int) -> None:
        """Limit the bytes that httptools buffers or skips without a callback.

        A packet that began or ended a head, or continued a body, isn't counted: the rest of it may
        be other parts of the request.
        """
        self._unparsed += size
        if self._state.reading is HEAD:
            if self._unparsed > self._limits.head_size:
                self._receiver.refuse(_head_too_large())
        elif self._state.is_in_body and self._unparsed > _OVERHEAD:
            self._receiver.refuse(InvalidJSON("The request body has too much between its chunks."))

    def _feed(self, data: bytes) -> bytes | None:
        """Parse data; return what has to be parsed next, or None."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._state.reading is HANDSHAKE:
                raw = self._raw
                self.free_request()
                self._receiver.hand_over(None if raw is None else bytes(raw))
            elif self._state.is_parsing:
                return self._without_upgrade() + data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as wrapped:
            error = wrapped.__context__
            if isinstance(error, _Stop):
                return None
            if isinstance(error, ServiceError):
                self._receiver.refuse(error)
            else:
                log.error("a request can't be read", exc_info=error)
                self._receiver.drop()
        except httptools.HttpParserInvalidMethodError:
            self._receiver.refuse(MalformedRequest("The request's method is unknown.", status=501))
        except httptools.HttpParserError:
            if self._state.is_in_body:
                self._receiver.refuse(InvalidJSON("The request body is not framed correctly."))
            else:
                self._receiver.refuse(MalformedRequest("The request is malformed."))
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

    # -- heads -------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._is_repeated_head:
            return
        if not self._receiver.may_begin():
            raise _Stop
        if self._state.reading is IDLE:  # in the same packet as the request before it
            self._state.read(HEAD)
        self.method = "GET"
        self._target = b""
        self._fields = []
        self._head_size = self._unparsed = 0
        self._has_progress = True

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
        if self._state.reading is not HEAD:  # a trailer, which is ignored
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
        self._head_size = self._unparsed = self._chunks = 0
        self._has_progress = True
        parser, server = self._parser, self._server
        self.method = method = parser.get_method().decode("ascii")
        version = parser.get_http_version()
        if version not in ("1.0", "1.1"):
            raise MalformedRequest("The HTTP version isn't supported.", status=505)
        environ = heads.environ_of(
            server.environ,
            method,
            self._target,
            version,
            self._fields,
            is_proxied=self._is_proxied,
        )
        environ["REMOTE_ADDR"] = self._peer
        self._fields = []
        if self._packet is not None and not is_cacheable(self._packet, environ):
            self._packet = None
        self._request = request = Request(
            server.application,
            self._receiver,
            environ,
            client_network(server.client_address(environ)),
            keep_alive=parser.should_keep_alive(),
        )
        length = heads.framing(environ)
        if length != 0:
            self._raw = None
            self._begin_body(request, length)
        elif parser.should_upgrade() and _is_websocket(method, environ):
            self._state.read(HANDSHAKE)
        else:
            self._raw = None

    # -- bodies ------------------------------------------------------------------------------

    def _begin_body(self, request: Request, length: int | None) -> None:
        server, environ = self._server, request.environ
        limit = server.body_limit(environ)
        expects = environ.get("HTTP_EXPECT")
        if expects and expects.lower() != "100-continue":
            raise MalformedRequest("The only supported expectation is 100-continue.", status=417)
        if length is not None and length > limit:
            self._refuse_or_drain(request, too_large(limit))
        else:
            request.body = Body(request.address, limit, self._limits.body_memory, server.spool)
            self._state.read(BODY)
        self.expects_continue = bool(expects) and request.version != "1.0"
        self._receiver.body_begins()

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
        self.expects_continue = False
        self._unparsed = 0
        self._has_progress = True
        if self._drain is not None:
            if not self._drain.discard(piece):
                self._receiver.drop()
                raise _Stop
            return
        request = self._request
        if request is None or request.body is None:
            return
        body = request.body
        try:
            if body.size + len(piece) > body.limit:
                raise too_large(body.limit)
            body.append(piece)
        except ServiceError as error:
            self._refuse_or_drain(request, error)

    def on_message_complete(self) -> None:
        request = self._request
        if request is None or self._parser.should_upgrade():
            return  # a handshake, or a body that a new parser reads
        if self._drain is not None:
            self._refuse_body(request, self._drain.error)
            raise _Stop
        self._request = None
        body = request.body
        if body is not None:
            request.environ["CONTENT_LENGTH"] = str(body.size)
            request.environ.pop("HTTP_TRANSFER_ENCODING", None)
            request.environ.pop("HTTP_EXPECT", None)
        self._state.read(IDLE if request.keep_alive else DONE)
        self._cache_head(request)
        self._receiver.receive(request)
        if not self._state.is_parsing:
            raise _Stop

    def _cache_head(self, request: Request) -> None:
        """Cache the head of a complete request. Call it before the application may change the
        environment."""
        packet, self._packet = self._packet, None
        if packet is None or not request.keep_alive:
            return
        size = 0 if request.body is None else request.body.size
        cache = self._server.heads
        # With another size, the body went on in later packets.
        if size == len(packet.body) and cache.comes_again(self._peer, packet):
            self._server.prepare(request.environ)
            cache.put(self._peer, packet, request.environ, request.address)

    def _refuse_or_drain(self, request: Request, error: ServiceError) -> None:
        """Refuse a body: at once (``_Stop``), or at its end if a proxy sends it (``drain``)."""
        if not self._is_proxied:
            self._refuse_body(request, error)
            raise _Stop
        self._drain = Drain(error, 0 if request.body is None else request.body.size)
        request.free()
        request.body = None
        self._state.read(DRAINING)

    def _refuse_body(self, request: Request, error: ServiceError) -> None:
        """Refuse a request whose body isn't read, or was drained.

        The application answers ``ObjectTooLarge`` itself where ``answers_too_large`` says so: it
        sees the announced length, and the response has the headers of its other errors.
        """
        self.free_request()
        server, environ = self._server, request.environ
        if not (isinstance(error, ObjectTooLarge) and server.answers_too_large(environ)):
            self._receiver.refuse(error)
            return
        request.body = None
        request.keep_alive = False
        announced = environ.get("CONTENT_LENGTH")
        environ["CONTENT_LENGTH"] = announced or str(server.body_limit(environ) + 1)
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        self._state.read(REFUSED)
        self._receiver.receive(request)


def _is_websocket(method: str, environ: dict[str, Any]) -> bool:
    return method == "GET" and environ.get("HTTP_UPGRADE", "").strip(" \t").lower() == "websocket"


def _head_too_large() -> MalformedRequest:
    return MalformedRequest("The request's headers are too large.", status=431)
