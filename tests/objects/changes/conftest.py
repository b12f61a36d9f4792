"""Callers of the REST face, and readers of what they change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.callers import *  # noqa: F403

_USED = (
    *("objects_object", "objects_relation", "objects_class", "objects_session", "objects_role"),
    *("objects_user", "catalogue_book", "chain_contract_event", "chain_outbox"),
    *("chain_transaction", "objects_interest", "objects_change", "objects_change_trim"),
)


@pytest.fixture
def db(emptied: None, django_db_blocker: Any) -> Iterator[None]:
    """The database, where everything is committed.

    What a test has left is removed by hand: emptying all tables takes longer than the tests.
    """
    from django.core.cache import cache
    from django.db import connection

    with django_db_blocker.unblock():
        cache.clear()
        yield
        with connection.cursor() as cursor:
            for table in _USED:
                cursor.execute(f"DELETE FROM {table}")
        # Readers have made settings.
        connection.close()


@pytest.fixture
def watch(db: None) -> Callable[..., Any]:
    """Makes a reader that wants these classes from now on."""
    from objects.changes import Reader

    def watching(*class_names: str) -> Reader:
        reader = Reader()
        reader.want(class_names)
        return reader

    return watching
