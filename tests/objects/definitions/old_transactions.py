"""Transactions of others that a change of a class meets, and requests that go on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from backend.kernel.connections import postgres
from tests.polling import until
from tests.rest import Reply


@contextmanager
def old_transaction(*statements: str) -> Iterator[Any]:
    """A connection with an open transaction that has run these statements."""
    with postgres.connect(60) as beside, beside.transaction():
        for statement in statements:
            beside.execute(statement)
        yield beside


@contextmanager
def meeting(request: Callable[[], Reply], *statements: str) -> Iterator[tuple[Any, list[Reply]]]:
    """Send a request from another thread while such a transaction is open.

    Yields the transaction's connection, and a list that has the reply after the block.
    """
    replies: list[Reply] = []

    def run() -> None:
        try:
            replies.append(request())
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    try:
        with old_transaction(*statements) as beside:
            thread.start()
            yield beside, replies
    finally:
        thread.join(60)


def wait_until_blocked_by(beside: Any) -> None:
    """Return when a statement waits for a lock of this connection."""

    def is_blocking() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT FROM pg_locks WHERE NOT granted AND %s = ANY (pg_blocking_pids(pid))",
                [beside.info.backend_pid],
            )
            return cursor.fetchone() is not None

    until(is_blocking, 30)
