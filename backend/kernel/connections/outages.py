"""Which errors of PostgreSQL say that it is away, or can't work: no fault of a request.

A request that meets one is answered with 503, and may be sent again later.
"""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors as pg

# Connection exceptions, too little of something (disk, memory, connections), errors of its system.
_CLASSES: Final = ("08", "53", "58")
_MOST_CAUSES: Final = 20
_STATES: Final = (
    pg.AdminShutdown,
    pg.CrashShutdown,
    pg.CannotConnectNow,
    pg.DatabaseDropped,
    pg.IdleSessionTimeout,
    # After a failover, a server that is no primary.
    pg.ReadOnlySqlTransaction,
)


def is_outage(error: BaseException | None) -> bool:
    """Whether the error, psycopg's or Django's, is of this kind."""
    # Django's errors, and our own in between, name what they come from. Code of the deployment may
    # link causes in a circle.
    for _ in range(_MOST_CAUSES):
        if error is None or isinstance(error, psycopg.Error):
            break
        error = error.__cause__
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        # libpq's own and psycopg's: the connection can't be made, or is lost. Of psycopg's
        # InterfaceErrors others are mistakes in how it is called.
        return isinstance(error, psycopg.OperationalError) or (
            isinstance(error, psycopg.InterfaceError) and "connection" in str(error)
        )
    if isinstance(error, pg.ConfigurationLimitExceeded):  # such as a query's own limit
        return False
    return isinstance(error, _STATES) or error.sqlstate[:2] in _CLASSES
