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
    from tests.realtime.livequery.harness import EngineHarness


@pytest.fixture(autouse=True)
def own_registrations() -> Iterator[None]:
    with registry.temporarily():
        yield


@pytest.fixture
def harnesses(db: None) -> Iterator[Callable[[], EngineHarness]]:
    """Makes live queries as another process has them."""
    from tests.realtime.livequery.harness import EngineHarness

    made: list[EngineHarness] = []

    def make() -> EngineHarness:
        made.append(EngineHarness())
        return made[-1]

    yield make
    for harness in made:
        harness.stop()


@pytest.fixture
def harness(harnesses: Callable[[], EngineHarness]) -> EngineHarness:
    """Live queries of one process."""
    return harnesses()


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
