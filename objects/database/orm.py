"""Queries of Django's ORM under the rules of ``statements.fetch``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db.models import QuerySet
from django.db.utils import Error as DjangoDatabaseError

from backend.kernel import statement_limits
from objects.database import statements


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
