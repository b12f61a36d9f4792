"""Fixtures: callers of the REST face, and a registry that remembers nothing of other tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.other_process import OtherProcess, other_process
from tests.rest import APPLICATION, CLIENT, MASTER, READ_ONLY, Api

__all__ = [
    "application",
    "client",
    "emptied",
    "fresh_registry",
    "master",
    "other",
    "reader",
]


@pytest.fixture(autouse=True)
def fresh_registry() -> None:
    """A rolled-back test leaves definitions behind that only its own transaction had."""
    from objects.definitions import registry
    from objects.users import roles

    registry.forget_all()
    roles.forget_all()


@pytest.fixture
def client(db: None) -> Api:
    """A caller with the application id and the REST key."""
    return Api(CLIENT)


@pytest.fixture
def master(db: None) -> Api:
    """A caller with the master key."""
    return Api(MASTER)


@pytest.fixture
def reader(db: None) -> Api:
    """A caller with the read-only master key."""
    return Api(READ_ONLY)


@pytest.fixture
def application(db: None) -> Api:
    """A caller with the application id alone."""
    return Api(APPLICATION)


@pytest.fixture(scope="session")
def other(django_db_setup: None, django_db_blocker: Any) -> Iterator[OtherProcess]:
    """Another process of the service, on the same database; it sees what is committed."""
    with django_db_blocker.unblock(), other_process() as process:
        yield process


@pytest.fixture(scope="module")
def emptied(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """For modules whose other process stores things: nothing of it is left for other tests."""
    yield
    from django.core.management import call_command

    with django_db_blocker.unblock():
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
