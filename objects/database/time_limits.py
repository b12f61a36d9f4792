"""Time limits of the statements of a connection, in place of those that requests have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection

from backend.kernel.errors import ServiceError
from objects.database.statements import fetch


@contextmanager
def time_limits(*, statement: int, lock: int) -> Iterator[None]:
    """Limit each statement of the block and its waits for locks, in milliseconds; 0: no limit.

    Inside a transaction the limits of the transaction stay.
    """
    if connection.in_atomic_block:
        yield
        return
    try:
        _set("statement_timeout", statement)
        _set("lock_timeout", lock)
        yield
    finally:
        try:
            fetch("RESET statement_timeout", {}, prepare=False)
            fetch("RESET lock_timeout", {}, prepare=False)
        except (ServiceError, psycopg.Error):
            connection.close()  # which ends the limits, too


def _set(setting: str, milliseconds: int) -> None:
    params = {"setting": setting, "value": str(milliseconds)}
    fetch("SELECT set_config(%(setting)s, %(value)s, false)", params, prepare=False)
