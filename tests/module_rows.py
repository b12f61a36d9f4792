"""Rows that the tests of a module share, each of which takes its own changes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def module_rows(django_db_blocker: Any) -> Iterator[None]:
    """For a fixture of a module: what it stores before it yields is there for all tests that have a
    transaction each, and gone after the last."""
    from django.core.cache import cache
    from django.db import transaction

    from objects.definitions import registry
    from objects.users import roles

    with django_db_blocker.unblock():
        atomic = transaction.atomic()
        atomic._from_testcase = True  # type: ignore[attr-defined]
        with atomic:
            # What an earlier test has left in memory.
            registry.forget_all()
            roles.forget_all()
            cache.clear()
            try:
                yield
            finally:
                transaction.set_rollback(True)
