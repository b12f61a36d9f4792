"""Reading parts of a page, each within a time limit; a part that can't be read says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import psycopg
import redis
from django.db import DatabaseError, connection, transaction

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger

PROBLEMS: Final = (ServiceError, DatabaseError, psycopg.Error, redis.RedisError, OSError)
"""Errors of PostgreSQL and Redis, also of those that don't respond in time."""
LIMIT: Final = 0.5
"""Seconds for each statement of a part, and for each response of Redis."""
_ALL: Final = 1.5
"""Seconds after which no further part of a page is read."""

log = get_logger("overview")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page: its value, or None and why it can't be shown."""

    value: Any
    complaint: str = ""


@contextmanager
def limited_statements(seconds: float = LIMIT) -> Iterator[None]:
    """Run the statements of the block in a transaction, and give each up after so many seconds."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            limit = str(max(1, int(seconds * 1000)))
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [limit])
        yield


class Parts:
    """The parts of one page, read one after the other."""

    def __init__(self) -> None:
        self._end = monotonic() + _ALL

    def read(self, name: str, read: Callable[[], Any]) -> Part:
        """Read a part. An error of it, also of its code, concerns no other part."""
        if monotonic() > self._end:
            return Part(None, "Other parts of the page took too long, so this isn't shown.")
        try:
            with limited_statements():
                return Part(read())
        except PROBLEMS as error:
            log.warning("a part of the start page can't be read", part=name, error=str(error))
            source = "Redis" if isinstance(error, redis.RedisError) else "The database"
            return Part(None, f"{source} didn't respond in time, so this can't be shown.")
        except Exception:
            log.exception("a part of the start page failed", part=name)
            return Part(None, "This can't be shown because of an internal error; see the log.")
