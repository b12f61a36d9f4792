"""Long responses: sent piece by piece, as fast as the client reads.

The next piece is fetched when the transport has room. Fetching runs in an executor, because the
application's iterator may read a disk, a database or another server. A client that doesn't read
holds an iterator and one piece, and no thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import Any, Final

from backend.logs import get_logger
from backend.server.responses import LAST_CHUNK, Response, chunk

PIECE: Final = 256 * 1024
"""Bytes that are fetched at a time."""

log = get_logger("server")


def gather(pieces: Iterator[bytes], size: int = PIECE) -> tuple[bytes, bool]:
    """Return at least ``size`` bytes from an iterator, or all; and whether it is exhausted."""
    gathered: list[bytes] = []
    count = 0
    for piece in pieces:
        gathered.append(piece)
        count += len(piece)
        if count >= size:
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


def close_soon(
    loop: asyncio.AbstractEventLoop, executor: Executor, iterable: Iterable[object] | None
) -> None:
    """Close an iterable in a thread; in this one if the process is stopping."""
    try:
        loop.run_in_executor(executor, close_iterable, iterable)
    except RuntimeError:  # the executor takes no more work
        close_iterable(iterable)


class Sender:
    """Sends one long response. Call it in the event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
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
        self._loop = loop
        self._executor = executor
        self._response = response
        self._write = write
        self._done = done
        self._left = length
        self._is_chunked = is_chunked
        self._is_fetching = False
        self._is_paused = False
        self._is_over = False

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
            if not self._is_fetching:
                self._close()

    def pump(self) -> None:
        """Fetch the next piece, unless one is being fetched or the transport is full."""
        if self._is_fetching or self._is_paused or self._is_over:
            return
        assert self._response.rest is not None
        self._is_fetching = True
        future = self._loop.run_in_executor(self._executor, gather, self._response.rest)
        future.add_done_callback(self._on_fetched)

    def _on_fetched(self, future: asyncio.Future[tuple[bytes, bool]]) -> None:
        self._is_fetching = False
        if self._is_over:
            self._close()
            return
        error = future.exception()
        if error is not None:
            log.error("a response broke off", exc_info=error)
            self._end(complete=False)
            return
        piece, is_last = future.result()
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
        self._close()
        self._done(complete)

    def _close(self) -> None:
        close_soon(self._loop, self._executor, self._response.close)
