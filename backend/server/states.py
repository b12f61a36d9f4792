"""The states of a connection, and which may follow which.

A connection reads requests and answers them at the same time (pipelining), so it has two states.
All transitions are legal or illegal here and nowhere else. Pure: no I/O.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Reading(IntEnum):
    """What the next byte from the client belongs to."""

    IDLE = 0
    """The next request."""
    HEAD = 1
    """A request line or headers."""
    BODY = 2
    """The body of a request."""
    DRAINING = 3
    """The body of a refused request, which is read to its end before the response is sent."""
    # From here on, nothing is parsed.
    HANDSHAKE = 4
    """The realtime process: a handshake is complete, and the connection is handed over."""
    DONE = 5
    """Nothing: no further request is accepted."""
    REFUSED = 6
    """A refused request, or requests behind it. Discarded."""
    ENDED = 7
    """Nothing: the client has closed its sending side."""


class Answering(IntEnum):
    """What happens to the next response."""

    READY = 0
    """No request is running."""
    WAITING = 1
    """A request is running, or waits for a thread."""
    SENDING = 2
    """A long response is being sent piece by piece."""
    # From here on, no request is started.
    LINGERING = 3
    """The last response is sent. What the client still sends is discarded, so that it can read
    the response."""
    CLOSING = 4
    """The transport closes once its buffer is sent, or has been aborted."""
    CLOSED = 5
    """The transport is closed."""


_ENDS: Final = frozenset({Reading.DONE, Reading.REFUSED, Reading.ENDED})

_READING: Final[dict[Reading, frozenset[Reading]]] = {
    Reading.IDLE: _ENDS | {Reading.HEAD},
    Reading.HEAD: _ENDS | {Reading.IDLE, Reading.BODY, Reading.DRAINING, Reading.HANDSHAKE},
    Reading.BODY: _ENDS | {Reading.IDLE, Reading.DRAINING},
    Reading.DRAINING: _ENDS,
    Reading.HANDSHAKE: frozenset({Reading.DONE, Reading.REFUSED}),
    Reading.DONE: frozenset({Reading.ENDED}),
    Reading.REFUSED: frozenset({Reading.ENDED}),
    Reading.ENDED: frozenset(),
}

_OVER: Final = frozenset({Answering.LINGERING, Answering.CLOSING, Answering.CLOSED})

_ANSWERING: Final[dict[Answering, frozenset[Answering]]] = {
    Answering.READY: _OVER | {Answering.WAITING},
    Answering.WAITING: _OVER | {Answering.READY, Answering.SENDING},
    Answering.SENDING: _OVER | {Answering.READY},
    Answering.LINGERING: frozenset({Answering.CLOSING, Answering.CLOSED}),
    Answering.CLOSING: frozenset({Answering.CLOSED}),
    Answering.CLOSED: frozenset(),
}


class IllegalTransition(Exception):
    """A defect of the server. The connection is aborted."""


class State:
    """Both states of one connection. Read the attributes; change them with the methods."""

    __slots__ = ("answering", "reading")

    def __init__(self) -> None:
        self.reading = Reading.IDLE
        self.answering = Answering.READY

    @property
    def is_parsing(self) -> bool:
        """Whether bytes from the client are parsed."""
        return self.reading < Reading.HANDSHAKE

    @property
    def is_in_body(self) -> bool:
        """Whether a request's headers are complete, and its body isn't."""
        return self.reading is Reading.BODY or self.reading is Reading.DRAINING

    @property
    def is_answering(self) -> bool:
        """Whether a request runs or its response is being sent."""
        return self.answering is Answering.WAITING or self.answering is Answering.SENDING

    @property
    def is_over(self) -> bool:
        """Whether the last response has been given to the transport, or will never be."""
        return self.answering >= Answering.LINGERING

    def read(self, following: Reading) -> None:
        """Change what is being read. Raises ``IllegalTransition``."""
        if following not in _READING[self.reading]:
            raise IllegalTransition(f"{self.reading.name} to {following.name}")
        self.reading = following

    def answer(self, following: Answering) -> None:
        """Change what is being answered. Raises ``IllegalTransition``."""
        if following not in _ANSWERING[self.answering]:
            raise IllegalTransition(f"{self.answering.name} to {following.name}")
        self.answering = following
