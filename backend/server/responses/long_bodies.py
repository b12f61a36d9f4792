"""Long responses: sent piece by piece, as fast as the client reads.

The next piece is fetched when the transport has room. Fetching takes a turn in a thread, because
the application's iterator may read a disk, a database or another server. A turn ends when it has
enough bytes or time, so responses whose iterators are slow share the threads with the others. A
client that doesn't read holds an iterator and one piece, and no thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any, Final

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger
from backend.server.responses.heads import LAST_CHUNK, Response, chunk
from backend.server.work import Job

PIECE: Final = 256 * 1024
"""Bytes that are fetched at a time."""
TURN: Final = 0.02
"""Seconds after which a turn ends with the bytes that it has."""

log = get_logger("server")


def gather(
    pieces: Iterator[bytes], size: int = PIECE, until: float = math.inf
) -> tuple[bytes, bool]:
    """Return at least ``size`` bytes from an iterator, or all; and whether it is exhausted.

    Returns fewer bytes, but one piece at least, at the time ``until`` (of ``monotonic``).
    """
    gathered: list[bytes] = []
    count = 0
    for piece in pieces:
        gathered.append(piece)
        count += len(piece)
        if count >= size or monotonic() >= until:
            return b"".join(gathered), False
    return b"".join(gathered), True


def close_iterable(iterable: Iterable[object] | None) -> None:
    """Call the iterable's ``close`` method (WSGI), if it has one. Doesn't raise."""
    close: Any = getattr(iterable, "close", None)
    if close is not None:
        try:
            close()
        except Exception as error:
            log.error("a response can't be closed", exc_info=error)


class Closing:
    """Closes the iterable of a response that isn't sent, in a thread."""

    is_abandoned = False

    def __init__(self, iterable: Iterable[object], address: str) -> None:
        self.address = address
        self._iterable = iterable

    def run(self) -> None:
        close_iterable(self._iterable)

    def finish(self, result: None) -> None:
        return None

    def fail(self, error: ServiceError) -> None:
        close_iterable(self._iterable)


class Sender:
    """Sends one long response. Call it in the event loop, except ``run``.

    It is a job of a dispatcher, for one turn at a time.
    """

    is_abandoned = False
    """Never: the iterable of a client that has disconnected still has to be closed."""

    def __init__(
        self,
        submit: Callable[[Job], None],
        address: str,
        response: Response,
        write: Callable[[bytes], None],
        done: Callable[[bool], None],
        *,
        length: int | None,
        is_chunked: bool,
    ) -> None:
        """``done`` is called with False if the response failed or isn't ``length`` bytes long.

        The connection has to be closed then, since the client would misread the next response.
        """
        self.address = address
        self._submit = submit
        self._response = response
        self._write = write
        self._done = done
        self._left = length
        self._is_chunked = is_chunked
        self._has_turn = False
        self._is_paused = False
        self._is_over = False
        self._is_closed = False

    def begin(self) -> None:
        """Send the first piece (``response.body``), and fetch the next one."""
        piece, self._response.body = self._response.body, b""
        if self._send(piece):
            self.pump()

    def pause(self) -> None:
        """Stop fetching: the transport is full."""
        self._is_paused = True

    def resume(self) -> None:
        """Continue fetching: the transport has room."""
        self._is_paused = False
        self.pump()

    def abandon(self) -> None:
        """End the response without ``done``: the client has disconnected."""
        if not self._is_over:
            self._is_over = True
            self._take_turn()

    def pump(self) -> None:
        """Fetch the next piece, unless one is being fetched or the transport is full."""
        if not self._is_paused and not self._is_over:
            self._take_turn()

    def _take_turn(self) -> None:
        if not self._has_turn and not self._is_closed:
            self._has_turn = True
            self._submit(self)

    def run(self) -> tuple[bytes, bool] | BaseException | None:
        """Fetch the next piece, or close the iterable if the response is over."""
        if self._is_over:
            self._is_closed = True
            close_iterable(self._response.close)
            return None
        assert self._response.rest is not None
        try:
            return gather(self._response.rest, until=monotonic() + TURN)
        except BaseException as error:  # SystemExit too: the thread survives
            return error

    def finish(self, result: tuple[bytes, bool] | BaseException | None) -> None:
        """Send what ``run`` has fetched."""
        self._has_turn = False
        if self._is_over or result is None:
            self._take_turn()
        elif isinstance(result, BaseException):
            log.error("a response broke off", exc_info=result)
            self._end(complete=False)
        else:
            piece, is_last = result
            if not self._send(piece):
                return
            if not is_last:
                self.pump()
            elif self._left:
                log.error("a response is shorter than announced", missing=self._left)
                self._end(complete=False)
            else:
                if self._is_chunked:
                    self._write(LAST_CHUNK)
                self._end(complete=True)

    def fail(self, error: ServiceError) -> None:
        """End the response: its turn was refused."""
        self._has_turn = False
        if not self._is_over:
            self._is_over = True
            self._done(False)
        self._is_closed = True
        close_iterable(self._response.close)

    def _send(self, piece: bytes) -> bool:
        if self._left is not None:
            self._left -= len(piece)
            if self._left < 0:
                log.error("a response is longer than announced")
                self._end(complete=False)
                return False
        if piece:
            self._write(chunk(piece) if self._is_chunked else piece)
        return True

    def _end(self, *, complete: bool) -> None:
        self._is_over = True
        self._take_turn()
        self._done(complete)
