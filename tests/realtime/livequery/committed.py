"""Callers of the REST face whose writes are committed beside the test's own transaction."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.people import User
from tests.rest import Api, Reply

T = TypeVar("T")


class Aside:
    """A thread with a connection of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)

    def do(self, work: Callable[[], T]) -> T:
        """Do something there."""
        return self._pool.submit(work).result(60)

    def close(self) -> None:
        """Give up the connection."""
        from django.db import connections

        self.do(connections.close_all)
        self._pool.shutdown()


@dataclass
class Committing(Api):
    """Calls that are committed when they are answered."""

    aside: Aside | None = None

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Reply:
        assert self.aside is not None
        return self.aside.do(lambda: Api.call(self, method, path, body, **options))


@dataclass
class CommittingUser(User):
    """The same for a user."""

    aside: Aside | None = None

    call = Committing.call
