"""Read the rows of a statement while they arrive, in libpq's chunked rows mode.

``PQexec`` returns when the whole result is in memory. Here the caller gets a few rows at a time and
can stop. Measured at 8 to 1,000 rows, it takes the same time.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import pq

CHUNK_ROWS: Final = 4
"""Rows of a chunk, which is held in memory whole: up to as many times ``LARGEST_OBJECT``."""
_CANCEL_TIMEOUT: Final = 2.0  # seconds


class ChunkedRows:
    """The rows of the statement that a connection is running. At most one at a time."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self._raw = raw
        self._pgconn = raw.pgconn
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)
        self.is_active = False
        """Whether results are unread. The connection can't send another statement until then."""

    def results(
        self, statement: bytes, params: list[Any], prepared: bytes | None
    ) -> Iterator[pq.abc.PGresult]:
        """Send the statement, or the one that is prepared under a name; yield its results.

        Chunks (``TUPLES_CHUNK``) have up to ``CHUNK_ROWS`` rows. The last result has none: it is
        the statement's success or its error. Read to the end, or call ``stop``. Raises psycopg's
        errors if the connection is lost.
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
        """Discard the unread results.

        With ``cancel`` the server ends the statement, which aborts a transaction. ``is_active``
        stays true if this fails or is interrupted: the connection has to be closed then.
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
            # The server may wait for its own messages to be read before it reads on.
            if any(event & ~select.POLLOUT for _, event in events):
                self._pgconn.consume_input()

    def _next(self) -> pq.abc.PGresult | None:
        while self._pgconn.is_busy():
            # psycopg's get_result would wait with the interpreter's lock held.
            self._poll.poll()
            self._pgconn.consume_input()
        return self._pgconn.get_result()
