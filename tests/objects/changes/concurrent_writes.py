"""What goes on beside a reader: statements, transactions of others, time that passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connection, connections, transaction

_T = TypeVar("_T")


def sql(text: str, *params: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(text, params)
        return cursor.fetchall() if cursor.description else None


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@contextmanager
def elsewhere() -> Iterator[Callable[[Callable[[], _T]], _T]]:
    """Another thread, with a connection of its own, that runs what it is given."""
    with ThreadPoolExecutor(1) as pool:

        def do(action: Callable[[], _T]) -> _T:
            return pool.submit(action).result(30)

        try:
            yield do
        finally:
            do(connections.close_all)


@contextmanager
def uncommitted(action: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """Do something in a transaction elsewhere; calling the result commits it."""
    with elsewhere() as do:
        atomic = transaction.atomic()
        do(atomic.__enter__)
        do(action)
        left = [atomic]
        yield lambda: do(lambda: left.pop().__exit__(None, None, None))
        if left:
            do(lambda: left.pop().__exit__(ValueError, ValueError(), None))


def age_of_marks(seconds: int) -> None:
    """Let it be so many seconds later for what is kept."""
    sql("UPDATE objects_change_trim SET marked_at = marked_at - %s * interval '1 s'", seconds)
