"""One connection of a client: its requests, their responses, and its end.

A connection runs one request at a time; pipelined requests wait, within limits. A request that is
refused early (too large, malformed, too slow) also ends the connection: the rest is read and
discarded, never parsed. ``states`` has the states and their transitions.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final, cast

from backend.kernel.errors import ServiceError
from backend.kernel.networks import client_network
from backend.server import handoff
from backend.server.connection.deadlines import Linger, Pace
from backend.server.connection.flow import Flow
from backend.server.connection.parser import RequestParser
from backend.server.connection.pipeline import Pipeline
from backend.server.connection.states import (
    CLOSED,
    CLOSING,
    DONE,
    ENDED,
    HANDSHAKE,
    HEAD,
    IDLE,
    LINGERING,
    READY,
    REFUSED,
    SENDING,
    WAITING,
    Reading,
    State,
)
from backend.server.context import Server
from backend.server.refusals import MalformedRequest, Overloaded, TooManyAtOnce, TooSlow
from backend.server.requests.request import Request
from backend.server.responses.heads import CONTINUE, Response, error_response, framed
from backend.server.responses.long_bodies import Sender

_COPIED: Final = 64 * 1024
"""Smaller bodies are copied behind their head, so that one write sends both."""


class Connection(asyncio.Protocol):
    """One connection. Call everything in the event loop."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._limits = server.limits
        self._state = State()
        self._flow: Flow = None  # type: ignore[assignment]
        self._parser: RequestParser = None  # type: ignore[assignment]
        self._pipeline = Pipeline()
        self._current: Request | None = None  # while a request is answered
        self._sender: Sender | None = None  # while a long response is sent
        self._linger: Linger | None = None  # while the connection lingers
        self._since = 0.0  # start of the current request, or end of the last response
        self._ended_at: float | None = None  # when the client closed its sending side
        self._is_proxied = False
        self.network = ""

    # -- what ``Connections`` calls (see ``Peer``) -------------------------------------------

    @property
    def reading(self) -> Reading:
        """What the next byte from the client belongs to."""
        return self._state.reading

    @property
    def waiting(self) -> int:
        """Complete requests that wait for the responses before them."""
        return len(self._pipeline)

    @property
    def idle_since(self) -> float | None:
        if self._state.is_answering or self._state.is_in_body or self._pipeline:
            return None
        return self._since

    @property
    def unsent(self) -> int:
        return 0 if self._state.answering is CLOSED else self._flow.unsent

    def drop(self) -> None:
        self._end(abort=True)

    def shut_down(self) -> None:
        if self.idle_since is not None:
            self._end()

    def check(self, now: float) -> None:
        limits, state = self._limits, self._state
        if state.answering is CLOSED:
            return
        if self._flow.falls_behind(now, limits.grace, limits.min_rate):
            self.drop()
        elif self._flow.unsent:
            if self._linger is not None:  # lingering starts when the response is sent
                self._linger.restart(now)
        elif self._linger is not None:
            if self._linger.is_over(now):
                self.drop()
        elif state.is_answering or self._pipeline.is_due:
            if self._ended_at is not None and now - self._ended_at > limits.half_closed:
                self.drop()
        elif state.is_in_body:
            pace = Pace(self._since)
            if pace.is_below(now, self._parser.received, limits.grace, limits.min_rate):
                if self._is_proxied:  # see ``drain``
                    self.drop()
                else:
                    self.refuse(TooSlow("The request's body arrives too slowly."))
        elif state.reading is HEAD:
            if now - self._since > limits.head_time:
                self.refuse(TooSlow("The request's headers took too long."))
        elif now - self._since > limits.idle_time:
            self._end()

    # -- what the event loop calls -----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        server = self._server
        address = transport.get_extra_info("peername")
        peer = address[0] if isinstance(address, tuple) else ""
        self._is_proxied = server.is_proxy(peer)
        self.network = "" if self._is_proxied else client_network(peer)
        self._since = monotonic()
        self._flow = Flow(cast(asyncio.Transport, transport))
        self._parser = RequestParser(server, self, self._state, peer, is_proxied=self._is_proxied)
        if not server.connections.add(self):
            # Lingering connections would use up file descriptors in a flood.
            self._send(error_response(TooManyAtOnce()), "GET", "1.1", keep_alive=False)
            self._end()

    def connection_lost(self, error: Exception | None) -> None:
        self._state.answer(CLOSED)
        self._server.connections.remove(self)
        self._parser.close()
        self._pipeline.clear()
        if self._current is not None:
            self._current.connection.is_closed = True
            self._current = None
        if self._sender is not None:
            self._sender.abandon()
            self._sender = None

    def data_received(self, data: bytes) -> None:
        state = self._state
        if not state.is_parsing:
            if self._linger is not None:
                self._linger.note(monotonic())
            return
        was_answering = state.is_answering
        if state.reading is IDLE:
            self._since = monotonic()
        self._parser.feed(data)
        if was_answering and state.is_answering and state.is_parsing:
            # Pipelined: the rest can wait until the current request is answered.
            self._flow.pause_reading()

    def eof_received(self) -> bool:
        state = self._state
        # A client may close its side after the request, and wait for the response.
        is_due = not state.is_over and (state.is_answering or self._pipeline.is_due)
        if state.reading is not HANDSHAKE and state.reading is not ENDED:
            state.read(ENDED)
            self._ended_at = monotonic()
        if not is_due:
            self._end()
        return is_due

    def pause_writing(self) -> None:
        self._flow.is_full = True
        self._server.connections.set_full(self, True)
        if self._sender is not None:
            self._sender.pause()

    def resume_writing(self) -> None:
        self._flow.is_full = False
        self._server.connections.set_full(self, False)
        if self._sender is not None:
            self._sender.resume()
        else:
            self._advance()

    # -- what the parser calls (see ``Receiver``) --------------------------------------------

    def may_begin(self) -> bool:
        if len(self._pipeline) < self._limits.pipelined:
            return True
        # Complete requests are answered, then the connection ends.
        self._pipeline.end()
        self._state.read(REFUSED)
        return False

    def body_begins(self) -> None:
        if not self._state.is_answering and not self._pipeline:
            self._continue()

    def receive(self, request: Request) -> None:
        if self._state.answering is READY and not self._flow.is_full and not self._pipeline:
            self._start(request)
        else:
            self._pipeline.add(request)

    def refuse(self, error: ServiceError) -> None:
        if self._state.is_over or self._pipeline.refusal is not None:
            return
        self._parser.free_request()
        self._pipeline.refusal = error
        self._state.read(REFUSED)
        self._advance()

    def hand_over(self, data: bytes | None) -> None:
        if self._pipeline or self._state.is_answering or self._flow.unsent or data is None:
            self.refuse(MalformedRequest("A handshake can't follow another request."))
        elif len(data) > handoff.MOST_BYTES:
            self.refuse(MalformedRequest("Too much was sent before the handshake's answer."))
        else:
            self._flow.pause_reading()
            if self._server.pass_on(self._flow.descriptor, data):
                self.drop()  # closes this process's descriptor alone
            else:
                self.refuse(Overloaded())

    # -- work --------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Start the next request. Without one, send a pending refusal or resume reading.

        No effect while a request runs or the transport is full: it is called again after that.
        """
        state = self._state
        if state.answering is not READY or self._flow.is_full:
            return
        request = self._pipeline.next_request()
        if request is not None:
            self._start(request)
            return
        refusal = self._pipeline.take_refusal()
        if refusal is not None:
            self._send(error_response(refusal), self._parser.method, "1.1", keep_alive=False)
            self._end_gracefully()
        elif state.is_parsing:
            if state.is_in_body:
                self._continue()
            self._flow.resume_reading()

    def _start(self, request: Request) -> None:
        self._current = request
        self._state.answer(WAITING)
        self._server.submit(request)

    def _continue(self) -> None:
        """Send 100 Continue, if the client waits for it before it sends the body."""
        if self._parser.expects_continue:
            self._parser.expects_continue = False
            self._flow.write(CONTINUE)

    def answered(self, request: Request, response: Response) -> None:
        """Send the response of the current request."""
        if self._state.answering is not WAITING or request is not self._current:
            self._server.discard(response, request.address)
            return
        if not self._server.connections.may_send(self, len(response.body)):
            self._server.discard(response, request.address)
            response = error_response(Overloaded())
        request.keep_alive = request.keep_alive and not self._server.is_stopping
        self._send(response, request.method, request.version, keep_alive=request.keep_alive)
        if self._state.answering is WAITING:  # otherwise a ``Sender`` calls ``_sent_rest``
            self._sent(complete=True)

    def _send(self, response: Response, method: str, version: str, *, keep_alive: bool) -> None:
        framing = framed(response, method, version, keep_alive=keep_alive)
        address = "" if self._current is None else self._current.address
        if framing.closes and self._current is not None:
            self._current.keep_alive = False
        write = self._flow.write
        if not framing.has_body:
            write(framing.head)
            self._server.discard(response, address)
        elif response.rest is None:
            if len(response.body) < _COPIED:
                write(framing.head + response.body)
            else:  # uvloop sends both writes with one system call
                write(framing.head)
                write(response.body)
        else:
            write(framing.head)
            self._state.answer(SENDING)
            self._sender = Sender(
                self._server.turns.submit,
                address,
                response,
                write,
                self._sent_rest,
                length=framing.length,
                is_chunked=framing.is_chunked,
            )
            self._sender.begin()

    def _sent_rest(self, complete: bool) -> None:
        self._sender = None
        self._sent(complete=complete)

    def _sent(self, *, complete: bool) -> None:
        """End a response whose last byte was given to the transport."""
        request, self._current = self._current, None
        self._since = monotonic()
        has_ended = self._state.reading is ENDED or self._server.is_stopping
        if not complete:
            self.drop()
        elif request is None or not request.keep_alive or (has_ended and not self._pipeline.is_due):
            self._end_gracefully()
        else:
            self._state.answer(READY)
            self._advance()

    # -- the end -----------------------------------------------------------------------------

    def _end_gracefully(self) -> None:
        """End the connection so that the client sees the last response.

        If a part of a body, or a pipelined request, may be unread, it is read and discarded:
        closing would reset the connection, and the client would lose the response.
        """
        state = self._state
        if state.is_over:
            return
        may_be_unread = self._flow.is_reading_paused and state.reading is not ENDED
        if not may_be_unread and state.reading is not REFUSED:
            self._end()
            return
        if state.is_parsing:
            state.read(DONE)
        state.answer(LINGERING)
        self._linger = Linger(monotonic(), self._limits)
        self._flow.end_writing()
        self._flow.resume_reading()

    def _end(self, *, abort: bool = False) -> None:
        """Close the transport: at once (``abort``), or when its buffer is sent."""
        state = self._state
        if state.answering is CLOSED:
            return
        if state.is_parsing:
            state.read(DONE)
        if state.answering is not CLOSING:
            state.answer(CLOSING)
        if abort:
            self._flow.abort()
        else:
            self._flow.close()
