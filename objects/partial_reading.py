"""Read the rows of a statement while they arrive, in libpq's chunked rows mode.

``PQexec`` and its kin return when the whole result is in memory. Here the caller gets a few rows at
a time and can stop. Measured at 8 to 1,000 rows, it takes the same time.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import pq

# The largest part is so many times the largest object (backend.result_memory).
CHUNK_ROWS: Final = 4
_CANCEL_TIMEOUT: Final = 2.0  # seconds


class PartialReading:
    """The statement whose rows a connection is reading. At most one at a time."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self._raw = raw
        self._pgconn = raw.pgconn
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)
        self.is_active = False
        """Whether there is more to read: nothing else can be sent over the connection then."""

    def results(
        self, statement: bytes, params: list[Any], prepared: bytes | None
    ) -> Iterator[pq.abc.PGresult]:
        """Send the statement, or the one that is prepared under a name; yield its results.

        Each has up to ``CHUNK_ROWS`` rows; the last may be an error instead. Read to the end, or
        call ``stop``. Raises psycopg's errors if the connection is lost.
        """
        self.is_active = True
        if prepared is None:
            self._pgconn.send_query_params(statement, params)
        else:
            self._pgconn.send_query_prepared(prepared, params)
        self._pgconn.set_chunked_rows_mode(CHUNK_ROWS)
        self._send()
        while (result := self._next()) is not None:
            yield result
        self.is_active = False

    def stop(self, *, cancel: bool) -> None:
        """Throw away what is still to come.

        With ``cancel`` the server ends the statement, which fails a transaction. Leaves
        ``is_active`` set if the connection can't be used any more.
        """
        if not self.is_active:
            return
        if cancel and self._pgconn.status == pq.ConnStatus.OK:
            with suppress(psycopg.Error):
                self._raw.cancel_safe(timeout=_CANCEL_TIMEOUT)
        with suppress(psycopg.Error):
            while self._next() is not None:
                pass
            self.is_active = False

    def _send(self) -> None:
        """Send the rest of a statement that is longer than the socket's buffer."""
        while self._pgconn.flush():
            self._poll.modify(self._pgconn.socket, select.POLLIN | select.POLLOUT)
            try:
                events = self._poll.poll()
            finally:
                self._poll.modify(self._pgconn.socket, select.POLLIN)
            # The server stops reading until its own messages are read.
            if any(event & ~select.POLLOUT for _, event in events):
                self._pgconn.consume_input()

    def _next(self) -> pq.abc.PGresult | None:
        while self._pgconn.is_busy():
            # psycopg's get_result would wait with the interpreter's lock held.
            self._poll.poll()
            self._pgconn.consume_input()
        return self._pgconn.get_result()
