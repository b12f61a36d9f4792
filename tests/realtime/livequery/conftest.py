"""Fixtures: callers of the REST face, and live queries beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from functions.runtime.registry import registry
from tests.callers import *  # noqa: F403
from tests.chain.conftest import node, node_of_session  # noqa: F401
from tests.people import PASSWORD, User, as_user
from tests.realtime.livequery.committed import Aside, Committing, CommittingUser
from tests.rest import CLIENT, MASTER, Api

if TYPE_CHECKING:
    from tests.realtime.livequery.desk import Desk


@pytest.fixture(autouse=True)
def own_registrations() -> Iterator[None]:
    with registry.temporarily():
        yield


@pytest.fixture
def desks(db: None) -> Iterator[Callable[[], Desk]]:
    """Makes live queries as another process has them."""
    from tests.realtime.livequery.desk import Desk

    made: list[Desk] = []

    def make() -> Desk:
        made.append(Desk())
        return made[-1]

    yield make
    for desk in made:
        desk.stop()


@pytest.fixture
def desk(desks: Callable[[], Desk]) -> Desk:
    """Live queries of one process."""
    return desks()


@pytest.fixture
def games(db: None, aside: Aside) -> Iterator[Api]:
    """The master key, and a class ``Game`` whose objects anybody may read, for one test."""
    master = Committing(MASTER, aside=aside)
    fields = {"score": {"type": "Number"}, "name": {"type": "String"}}
    assert master.post("/schemas/Game", {"className": "Game", "fields": fields}).status == 200
    yield master
    master.delete("/purge/Game")
    assert master.delete("/schemas/Game").status == 200


@pytest.fixture
def person(db: None, aside: Aside) -> Callable[[str], User]:
    """Signs a user up."""

    def signed_up(name: str) -> User:
        body = {"username": f"{name} {uuid4()}", "password": PASSWORD}
        reply = Committing(CLIENT, aside=aside).post("/users", body)
        user = as_user(name, reply)
        return CommittingUser(user.headers, user.mount, user.user_id, name, user.token, aside)

    return signed_up
