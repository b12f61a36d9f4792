"""Run statements of the object store.

Statements go to Django's own connection, so they are part of an open ``transaction.atomic``, but
through psycopg's wrapper of libpq instead of a cursor: text out, text in. All that the store reads
is text already (ids, timestamps in wire form, JSON). The adaptation that a cursor does for each
parameter and column is unnecessary; it was a third of the time of a get by id.

Errors of the database are raised as the service's own where a client can do something about them
(``Timeout``, ``TransactionConflict``, ``ServiceUnavailable``); constraint violations are left to
the caller, who knows what the constraint means.

libpq reads statements and parameters as C strings, which end at the first NUL: the server would see
another text than the one that was checked. No text with a NUL reaches libpq, neither from here nor
from Django's cursors (``orm.guard_connection``); ``IncorrectType`` is raised instead.
"""

from __future__ import annotations

import threading
from functools import cached_property
from time import monotonic
from typing import Any, TypeVar

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import OperationalError as DjangoOperationalError
from psycopg import errors as pg
from psycopg import pq
from psycopg.adapt import Transformer

from backend.kernel.connections.outages import is_outage
from backend.kernel.errors import (
    IncorrectType,
    InvalidQuery,
    ServiceUnavailable,
    Timeout,
    TransactionConflict,
)
from backend.kernel.limits import statements
from backend.kernel.memory_pool import ResultMemory
from backend.logs.setup import get_logger
from objects.database.chunked_rows import ChunkedRows
from objects.database.parameters import (
    LONGEST_KEPT,
    Parameters,
    encode,
    unstorable,
    with_names,
    with_numbers,
)
from objects.database.prepared_statements import SLOW, PreparedStatements
from objects.database.row_types import Decoder, decoder_of, value_decoder_of

log = get_logger("database")

_T = TypeVar("_T")
Row = tuple[Any, ...]
"""The values of one row, each PostgreSQL's text or None."""

_MOST_PARAMS = 65_535  # the protocol's limit
_TEXT = 25  # the type text
# Looking at a connection takes two system calls. What can be repeated isn't worth them if the
# connection was used within this time.
_JUST_NOW = 0.01  # seconds
# The columns whose length clients decide, last in ``rows.object_columns``: access lists and fields.
_COUNTED = 3
# Errors about a statement and its values: the connection has nothing to do with them.
_EXPLAINED = (
    *(psycopg.IntegrityError, psycopg.DataError, pg.QueryCanceled, pg.LockNotAvailable),
    *(pg.DeadlockDetected, pg.SerializationFailure, pg.ProgramLimitExceeded),
    pg.StatementTooComplex,
)
_SUCCESS = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
_IDLE = pq.TransactionStatus.IDLE


def fetch(
    sql: str,
    params: Parameters,
    *,
    prepare: bool,
    is_limited: bool = False,
    is_last: bool = False,
    is_read: bool = False,
    memory: ResultMemory | None = None,
    decoder: Decoder | None = None,
) -> list[Any]:
    """Run one statement and return its rows, every value as PostgreSQL's text or None.

    ``sql`` has a ``%s`` for each parameter, or ``%(name)s`` for parameters by name; they are text,
    numbers, booleans, None, or lists of text or numbers for arrays. ``prepare`` keeps the
    statement's plan on the server: for statements whose best plan doesn't depend on the parameters
    (lookups by id, writes), never for a client's ``where``, since a generic plan doesn't know how
    rare a value is. Long statements are never prepared. ``is_limited`` says that it runs with a
    client's rights and has a client's time (``statement_limits``). ``is_last`` says that nothing
    follows in the outermost transaction: if nothing came before either, the statement is sent
    without ``BEGIN`` and commits automatically. ``is_read`` says that it changes nothing: outside a
    transaction it is sent again, once, if its connection was lost before a row arrived. ``memory``
    counts the last three columns while rows arrive. ``decoder`` is how ``fetch_rows`` and
    ``fetch_values`` have the rows decoded.

    Raises ``InvalidQuery`` for more parameters than a statement can have and for a statement that
    is too complex for PostgreSQL, ``IncorrectType`` for text that PostgreSQL can't store and
    numbers out of range, ``Timeout``, ``TransactionConflict``, ``ServiceUnavailable``, what
    ``memory`` raises, and psycopg's other errors as they are.
    """
    if len(params) > _MOST_PARAMS:
        raise InvalidQuery("The request has too many values for one statement.")
    if type(params) is dict:
        statement, names = with_names(sql, len(params))
        encoded: list[Any] = [encode(params[name]) for name in names]
    else:
        encoded = [encode(value) for value in params]
        statement = with_numbers(sql, len(encoded))
    prepare = prepare and len(sql) <= LONGEST_KEPT
    before = 0 if memory is None else memory.size
    is_first = True
    while True:
        session = _session(may_repeat=is_read)
        begin = monotonic()
        try:
            if is_limited:
                statements.begin(session, is_read=is_read)
            if memory is not None:
                return session.read(statement, encoded, prepare, memory)
            result = session.run(statement, encoded, prepare, is_last=is_last)
            return session.rows(result, decoder) if result.ntuples else []
        except psycopg.Error as error:
            _thread.connection.errors_occurred = True
            if session.limited is not None and isinstance(error, pg.QueryCanceled):
                session.limited.raise_refusal(error)
            has_rows = memory is not None and memory.size != before
            if is_first and is_read and not has_rows and _was_lost(error):
                is_first = False
                continue
            session.has_unexpected_state |= not isinstance(error, _EXPLAINED)
            raise_service_error(error)
            raise
        finally:
            statements.note_answer()
            if session.limited is not None:
                statements.end(session)
            session.used_at = now = monotonic()
            if prepare and now - begin > SLOW:
                session.prepared.plan_again(statement)


def fetch_rows(
    row_type: type[_T], sql: str, params: Parameters, *, prepare: bool, is_read: bool = False
) -> list[_T]:
    """Run one statement and return its rows as ``row_type`` (``objects.database.row_types``).

    Parameters and errors are those of ``fetch``. The statement has to return as many columns as the
    row type has fields.
    """
    return fetch(sql, params, prepare=prepare, is_read=is_read, decoder=decoder_of(row_type))


def fetch_values(
    value_type: type[_T], sql: str, params: Parameters, *, prepare: bool, is_read: bool = False
) -> list[_T]:
    """Run one statement and return the values of its only column: text, numbers or booleans.

    Parameters and errors are those of ``fetch``. Null is None: a statement whose column may be null
    needs a row type.
    """
    decoder = value_decoder_of(value_type)
    return fetch(sql, params, prepare=prepare, is_read=is_read, decoder=decoder)


def fetch_value(value_type: type[_T], sql: str, params: Parameters, *, prepare: bool) -> _T | None:
    """Run one statement and return the value of its first row; None for null or without a row."""
    values = fetch_values(value_type, sql, params, prepare=prepare)
    return values[0] if values else None


class _Session:
    """One connection to PostgreSQL, and what is kept with it."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self.limited: statements.Limited | None = None
        self.used_at = 0.0
        # An error other than ``_EXPLAINED`` has occurred. Code of the deployment may have changed
        # the connection's settings, such as ``search_path``, or its server is no primary any more:
        # what comes next connects again.
        self.has_unexpected_state = False
        self._pgconn = raw.pgconn
        self._chunked = ChunkedRows(raw)
        self.prepared = PreparedStatements(raw.pgconn, self._check)
        # psycopg's own loop over rows and columns, in C; five times as fast as one here.
        self._transformer = Transformer(raw)

    def is_alive(self, *, may_repeat: bool) -> bool:
        """Return whether the server hasn't closed the connection. Takes no round trip.

        Finding that out before a statement is sent makes it unnecessary to repeat statements, which
        would be unsafe for writes. For a statement that may be repeated, a connection that was
        used just now isn't checked.
        """
        if may_repeat and monotonic() - self.used_at < _JUST_NOW:
            return True
        try:
            # The first call reads the server's last message, or a notice. libpq notices the end of
            # the connection only when it reads again. Each is one system call.
            self._pgconn.consume_input()
            self._pgconn.consume_input()
        except psycopg.Error:
            return False
        return self._pgconn.status == pq.ConnStatus.OK

    @property
    def has_unread_results(self) -> bool:
        """Whether an interrupted statement left results: the connection has to be closed then."""
        return self._chunked.is_active

    def read(self, sql: bytes, params: list[Any], prepare: bool, memory: ResultMemory) -> list[Row]:
        """Run a statement and count its rows while they arrive.

        Raises psycopg's errors, and what ``memory`` raises. The connection stays usable.
        """
        self._begin()
        name = self.prepared.name_of(sql) if prepare else None
        rows: list[Row] = []
        failure = None
        try:
            for result in self._chunked.results(sql, params, name):
                if result.status == pq.ExecStatus.TUPLES_CHUNK:
                    chunk = self.rows(result)
                    memory.add_texts([text for row in chunk for text in row[-_COUNTED:] if text])
                    rows += chunk
                elif result.status not in _SUCCESS:
                    failure = result
        finally:
            # Inside a transaction the rest is read: cancelling would abort the transaction.
            self._chunked.stop(cancel=self.raw.autocommit)
        if failure is None:
            return rows
        if name is not None and self._is_outdated(failure):
            self.prepared.forget(sql)
            return self.read(sql, params, prepare, memory)
        raise self._error(failure)

    def run(
        self, sql: bytes, params: list[Any], prepare: bool, *, is_last: bool = False
    ) -> pq.abc.PGresult:
        """Run a statement; raises psycopg's errors."""
        if not is_last:
            self._begin()
        if not prepare:
            return self._check(self._pgconn.exec_params(sql, params))
        name = self.prepared.name_of(sql)
        result = self._pgconn.exec_prepared(name, params)
        if result.status in _SUCCESS:
            return result
        if self._is_outdated(result):
            self.prepared.forget(sql)
            return self.run(sql, params, prepare, is_last=is_last)
        return self._check(result)

    def rows(self, result: pq.abc.PGresult, decoder: Decoder | None = None) -> list[Any]:
        """Return the rows of a result, every value as text, or as the decoder makes them."""
        self._transformer.set_pgresult(result, set_loaders=False)
        if decoder is None:
            self._transformer.set_loader_types([_TEXT] * result.nfields, pq.Format.TEXT)
            return self._transformer.load_rows(0, result.ntuples, tuple)
        if len(decoder.oids) != result.nfields:
            raise ValueError(f"{result.nfields} columns for {len(decoder.oids)} fields")
        self._transformer.set_loader_types(decoder.oids, pq.Format.TEXT)
        return self._transformer.load_rows(0, result.ntuples, decoder.make)

    def _begin(self) -> None:
        if not self.raw.autocommit and self._pgconn.transaction_status == _IDLE:
            # psycopg's cursors send BEGIN before the first statement. This isn't one of them.
            self._check(self._pgconn.exec_(b"BEGIN"))

    def _is_outdated(self, result: pq.abc.PGresult) -> bool:
        """Return whether a prepared statement failed because a migration has altered its table.

        False inside a transaction, which the failure has aborted: there is nothing to repeat.
        """
        return (
            self._pgconn.transaction_status == _IDLE
            and result.error_field(pq.DiagnosticField.SQLSTATE) == b"0A000"
            and b"cached plan" in (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"")
        )

    def _check(self, result: pq.abc.PGresult) -> pq.abc.PGresult:
        if result.status not in _SUCCESS:
            raise self._error(result)
        return result

    def _error(self, result: pq.abc.PGresult) -> psycopg.Error:
        if self._pgconn.status != pq.ConnStatus.OK:
            # The error is libpq's own and has no code.
            return psycopg.OperationalError(self._pgconn.get_error_message())
        return pg.error_from_result(result, encoding="utf-8")


class _Thread(threading.local):
    """Django's connection of this thread.

    Looking it up in ``django.db`` for each statement would cost more than everything else here.
    """

    @cached_property
    def connection(self) -> BaseDatabaseWrapper:
        return connections[DEFAULT_DB_ALIAS]


_thread = _Thread()


def _session(*, may_repeat: bool = False) -> _Session:
    """Return the session of this thread's connection, after reconnecting if that is necessary.

    ``may_repeat`` is as in ``_Session.is_alive``.
    """
    connection = _thread.connection
    raw = connection.connection
    if raw is not None:
        session: _Session | None = getattr(raw, "service_session", None)
        if session is None:
            session = raw.service_session = _Session(raw)
        in_transaction = connection.in_atomic_block
        if not session.has_unread_results and (
            # Reconnecting would lose the transaction: over a lost connection the statement fails.
            in_transaction
            or not (
                session.has_unexpected_state
                or raw.closed
                or not session.is_alive(may_repeat=may_repeat)
            )
        ):
            return session
        connection.close()
        if in_transaction:
            raise _unavailable(psycopg.OperationalError("a statement was not read to its end"))
    try:
        connection.ensure_connection()
    except DjangoOperationalError as error:
        raise _unavailable(error) from error
    raw = connection.connection
    session = raw.service_session = _Session(raw)
    return session


def ensure_session() -> None:
    """Connect this thread if it isn't, or if the server has closed its connection.

    Raises ``ServiceUnavailable``.
    """
    _session()


# How PostgreSQL refuses such text where a statement decodes it, as in the strings of JSON.
UNSTORABLE = (pg.UntranslatableCharacter, pg.CharacterNotInRepertoire)


def raise_service_error(error: psycopg.Error) -> None:
    """Raise the service's error for one of psycopg's; return if there is none."""
    if isinstance(error, pg.QueryCanceled):
        raise statements.too_long() from error
    if isinstance(error, pg.LockNotAvailable):
        raise Timeout("The object is locked by another request; try again.") from error
    if isinstance(error, pg.DeadlockDetected | pg.SerializationFailure):
        raise TransactionConflict("Another request changed the same objects; try again.") from error
    if isinstance(error, pg.NumericValueOutOfRange):
        raise IncorrectType("A number is out of range.") from error
    if isinstance(error, pg.StatementTooComplex):
        raise InvalidQuery("The query is nested too deeply or has too many parts.") from error
    if isinstance(error, pg.InvalidParameterValue) and "time zone" in str(error):
        # PostgreSQL may have another edition of the database of time zones.
        raise InvalidQuery("The database doesn't know the time zone of the query.") from error
    if isinstance(error, UNSTORABLE):
        raise unstorable() from error
    if isinstance(error, psycopg.OperationalError) and _is_closed():
        raise _unavailable(error) from error
    if is_outage(error):
        raise _unable(error) from error


def _unavailable(error: Exception) -> ServiceUnavailable:
    """Log the reason and return the client's error, which doesn't have it."""
    log.warning("the database can't be reached", reason=str(error).strip())
    return ServiceUnavailable("The database can't be reached at the moment.")


def _unable(error: Exception) -> ServiceUnavailable:
    """Return the error for a server that responds but needs its operator."""
    log.error("the database can't do its work", reason=str(error).strip())
    return ServiceUnavailable("The database can't do that at the moment.")


def _was_lost(error: psycopg.Error) -> bool:
    """Return whether the connection was lost, and with it no transaction."""
    is_lost = isinstance(error, psycopg.OperationalError) and _is_closed()
    return is_lost and not _thread.connection.in_atomic_block


def _is_closed() -> bool:
    raw = _thread.connection.connection
    return raw is None or raw.closed
