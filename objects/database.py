"""One way to run a statement of the object store.

Statements go to Django's own connection, so they are part of an open ``transaction.atomic``,
but through a psycopg cursor with server-side parameters that is kept with the connection:
Django's cursor wrapper and client-side binding cost a quarter of the requests per second of a
get by id.

Errors of the database come out as the service's own where a client can do something about them
(``Timeout``, ``TransactionConflict``, ``ServiceUnavailable``); constraint violations are left to
the caller, who knows what the constraint means.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Any

import psycopg
from django.db import connection
from django.db.utils import OperationalError as DjangoOperationalError
from psycopg import errors as pg

from backend.errors import IncorrectType, ServiceUnavailable, Timeout, TransactionConflict

Row = tuple[Any, ...]

_UNAVAILABLE = "The database can't be reached at the moment."


class _Session:
    """What is kept with one psycopg connection: its cursor, and a look at its socket."""

    def __init__(self, raw: psycopg.Connection[Row]) -> None:
        self.cursor = psycopg.Cursor(raw)
        self._raw = raw
        self._poll = select.poll()
        self._poll.register(raw.fileno(), select.POLLIN)

    def is_alive(self) -> bool:
        """Whether the server has not hung up, without asking it.

        An idle connection has nothing to read; when it has, it is the server's farewell (or a
        notice, which is read away). Asking here costs two microseconds and makes a repetition of
        statements unnecessary, which would be unsafe for writes.
        """
        if not self._poll.poll(0):
            return True
        try:
            self._raw.pgconn.consume_input()
        except psycopg.Error:
            return False
        return self._raw.pgconn.status == psycopg.pq.ConnStatus.OK


def fetch(sql: str, params: Sequence[Any], *, prepare: bool) -> list[Row]:
    """Run one statement and return its rows; none for a statement that returns no rows.

    ``prepare`` keeps the statement's plan on the server. Only statements whose best plan doesn't
    depend on the parameters may do so: lookups by id and writes, never a client's ``where``
    (a generic plan doesn't know how rare a value is).
    """
    cursor = _cursor()
    try:
        cursor.execute(sql, params, prepare=prepare)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        connection.errors_occurred = True
        _raise_service_error(error)
        raise


def _cursor() -> psycopg.Cursor[Row]:
    raw = connection.connection
    if raw is not None:
        session: _Session | None = getattr(raw, "service_session", None)
        if session is None:
            session = raw.service_session = _Session(raw)
        if connection.in_atomic_block or (not raw.closed and session.is_alive()):
            return session.cursor
        connection.close()
    try:
        connection.ensure_connection()
    except DjangoOperationalError as error:
        raise ServiceUnavailable(_UNAVAILABLE) from error
    raw = connection.connection
    session = raw.service_session = _Session(raw)
    return session.cursor


def _raise_service_error(error: psycopg.Error) -> None:
    if isinstance(error, pg.QueryCanceled):
        raise Timeout("The request took too long and was stopped.") from error
    if isinstance(error, pg.LockNotAvailable):
        raise Timeout("The object is locked by another request; try again.") from error
    if isinstance(error, pg.DeadlockDetected | pg.SerializationFailure):
        raise TransactionConflict("Another request changed the same objects; try again.") from error
    if isinstance(error, pg.NumericValueOutOfRange):
        raise IncorrectType("A number is out of range.") from error
    if isinstance(error, psycopg.OperationalError) and connection.connection.closed:
        raise ServiceUnavailable(_UNAVAILABLE) from error
