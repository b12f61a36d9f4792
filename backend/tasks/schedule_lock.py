"""One process keeps the schedule, however many are started: the one that holds a lock.

The lock is PostgreSQL's and belongs to a connection. It is free as soon as its process has ended,
and some seconds after its machine is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import sleep
from typing import Any, Final

import psycopg

from backend.kernel.connections import advisory_locks, postgres
from backend.logs.setup import get_logger

_PATIENCE: Final = 5  # seconds
_PAUSE: Final = 1.0  # seconds
# Both sides find out within half a minute that the other one can't be reached, whether they are
# waiting for it (keepalives, in seconds) or have sent something (in milliseconds).
_SERVER_KEEPALIVES: Final = {
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 5,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
# libpq's names for the same.
_CLIENT_KEEPALIVES: Final = {
    name.replace("tcp_keepalives", "keepalives"): value
    for name, value in _SERVER_KEEPALIVES.items()
}

log = get_logger("schedule")


class ScheduleLock:
    """The lock, as one process sees it."""

    def __init__(self) -> None:
        self._connection: psycopg.Connection | None = None
        self._has_warned = False  # of the present outage

    def wait(self) -> None:
        """Wait until no other process holds the lock, and take it. Waits as long as the database is
        away, and logs that once for each outage."""
        is_waiting = False
        while not self._take():
            if not is_waiting:
                log.info("waiting for the lock of the schedule, which another process may hold")
                is_waiting = True
            sleep(_PAUSE)
        log.info("this process runs the schedule")

    def _take(self) -> bool:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = postgres.connect(
                    _PATIENCE, _SERVER_KEEPALIVES, **_CLIENT_KEEPALIVES
                )
            is_held = advisory_locks.try_lock_session(self._run, advisory_locks.SCHEDULE)
        except psycopg.Error as error:
            if not self._has_warned:
                log.warning("the schedule waits for the database", error=str(error))
                self._has_warned = True
            self.release()
            return False
        self._has_warned = False
        return is_held

    def _run(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        assert self._connection is not None
        return self._connection.execute(sql, parameters).fetchall()

    @property
    def is_held(self) -> bool:
        """Return whether the connection that took the lock is still open. Waits for the server, for
        as long as that doesn't answer."""
        try:
            if self._connection is None:
                return False
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def release(self) -> None:
        """Let others take it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
