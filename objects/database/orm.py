"""Queries of Django's ORM under the rules of ``statements.fetch``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.utils import DataError as DjangoDataError
from django.db.utils import Error as DjangoDatabaseError
from psycopg.types.json import Json, Jsonb

from backend.kernel.limits import statements as statement_limits
from objects.core.names import is_storable_text
from objects.database import statements
from objects.database.parameters import check_text, unstorable


@contextmanager
def orm_queries() -> Iterator[None]:
    """Run ORM queries with the connection and the errors of ``statements.fetch``.

    Also a decorator. A connection that the server has closed is replaced at the beginning, unless
    a transaction is open. Errors of the database are raised as the service's own
    (``TransactionConflict``, ``Timeout``, ``ServiceUnavailable``), and constraint violations as
    psycopg's, so that callers don't depend on which of the two runs a statement.
    """
    statements.ensure_session()
    try:
        yield
    except DjangoDatabaseError as error:
        if not isinstance(error.__cause__, psycopg.Error):
            raise
        statements.raise_service_error(error.__cause__)
        raise error.__cause__ from None
    finally:
        statement_limits.note_answer()


def delete_in_batches(rows: QuerySet[Any], size: int) -> int:
    """Delete the rows of a query, ``size`` in a transaction; return how many there were.

    Rows that another transaction has locked are left out, so several processes may do this at
    once, and none holds the locks of many rows for long.
    """
    deleted = 0
    while True:
        with orm_queries():
            batch = rows.select_for_update(skip_locked=True).values("pk")[:size]
            count, _ = rows.model._default_manager.filter(pk__in=batch).delete()
        deleted += count
        if count < size:
            return deleted


# -- Text that PostgreSQL can't store --------------------------------------------------------------

_Execute = Callable[[Any, Any, bool, dict[str, Any]], Any]


def guard_connection(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Refuse unstorable text in everything that Django's ORM sends over a connection.

    A receiver of ``connection_created``; several calls for one connection do no harm.
    """
    if _refuse_unstorable not in connection.execute_wrappers:
        connection.execute_wrappers.append(_refuse_unstorable)


def _refuse_unstorable(
    execute: _Execute, sql: Any, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    if isinstance(sql, str):
        check_text(sql)
    try:
        return execute(sql, params, many, context)
    except DjangoDataError as error:
        # psycopg refuses NUL itself, with an error that isn't only about text.
        if isinstance(error.__cause__, statements.UNSTORABLE) or _holds_unstorable(params):
            raise unstorable() from error
        raise
    except UnicodeEncodeError as error:
        raise unstorable() from error


def _holds_unstorable(value: object) -> bool:
    if isinstance(value, str):
        return not is_storable_text(value)
    if isinstance(value, Json | Jsonb):
        return _holds_unstorable(value.obj)
    if isinstance(value, Mapping):
        return any(map(_holds_unstorable, [*value.keys(), *value.values()]))
    return isinstance(value, list | tuple) and any(map(_holds_unstorable, value))
