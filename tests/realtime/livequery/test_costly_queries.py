"""Queries and objects that take long to match."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from realtime.core.effort import MOST, QUICK
from tests.realtime.livequery.desk import CLIENT_KEYS, MASTER_KEYS, Caller, Desk
from tests.rest import Api

pytestmark = pytest.mark.django_db

CONSTRAINTS = 100
QUERIES = 12  # a machine has to be very fast to match them in the time of one address


def costly(last: int) -> dict[str, object]:
    """Finds an object with this number in its list, after it has looked for many others."""
    return {"$or": [*({"list": -number - 1} for number in range(CONSTRAINTS - 1)), {"list": last}]}


class Ticks:
    """How long the event loop was held at the most, since this was made."""

    def __init__(self, desk: Desk) -> None:
        self.longest = 0.0
        self._last = monotonic()
        self._desk = desk
        self._task = desk.run(self._begun())

    async def _begun(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            now = monotonic()
            self.longest = max(self.longest, now - self._last)
            self._last = now
            await asyncio.sleep(0.001)

    async def _ended(self) -> None:
        self._task.cancel()

    def stop(self) -> float:
        self._desk.run(self._ended())
        return self.longest


def test_what_takes_long_is_matched_beside_the_event_loop(desk: Desk, games: Api):
    ann = desk.connect()
    length = MOST // CONSTRAINTS - 100
    assert length * CONSTRAINTS > 100 * QUICK
    ann.subscribe(1, "Game", costly(length))
    ticks, began = Ticks(desk), monotonic()
    game = games.make("Game", list=[*range(1, length + 1)])
    assert ann.told(1) == [("create", 1, game)]
    took, longest = monotonic() - began, ticks.stop()
    assert longest < took / 2


def test_what_takes_too_long_is_ended_and_others_go_on(desk: Desk, games: Api):
    ann, bob = desk.connect(), desk.connect()
    ann.subscribe(1, "Game", costly(1))
    ann.subscribe(2, "Game", {"score": 1})
    bob.subscribe(1, "Game", {"list": 1})
    game = games.make("Game", list=[1], score=1)
    assert sorted(ann.told(2)) == [("create", 1, game), ("create", 2, game)]
    assert bob.told(1) == [("create", 1, game)]
    long = games.make("Game", list=[1] * (MOST // CONSTRAINTS + 1), score=1)
    message = [ann.next(), ann.next()]
    (error,) = (item for item in message if item["op"] == "error")
    assert (error["code"], error["requestId"], error["reconnect"]) == (124, 1, False)
    assert (
        error["error"] == "The query has too many constraints for an object with such long lists."
    )
    (event,) = (item for item in message if item["op"] != "error")
    assert (event["op"], event["requestId"], event["object"]["objectId"]) == ("create", 2, long)
    assert bob.told(1) == [("create", 1, long)]
    after = games.make("Game", list=[1], score=1)
    assert ann.told(1) == [("create", 2, after)]


def at(caller: Caller, address: str) -> Caller:
    caller.socket.address = address
    return caller


def costly_queries(caller: Caller) -> list[int]:
    """Subscribe to queries that take longer together than one address may take; the list that an
    object needs to match them."""
    length = MOST // CONSTRAINTS // 2
    for number in range(1, QUERIES + 1):
        caller.subscribe(number, "Game", costly(length - number))
    return [*range(1, length + 1)]


def test_queries_of_one_address_end_when_others_wait_for_them_too_long(desk: Desk, games: Api):
    ann, bob = at(desk.connect(), "198.51.100.1"), at(desk.connect(), "198.51.100.2")
    numbers = costly_queries(ann)
    bob.subscribe(1, "Game")
    game = games.make("Game", list=numbers)
    events = [ann.next() for _ in range(QUERIES)]
    assert bob.told(1) == [("create", 1, game)]
    errors = [event for event in events if event["op"] == "error"]
    assert {(event["code"], event["reconnect"]) for event in errors} == {(124, False)}
    assert errors[0]["error"].startswith("Queries of this address take too long")
    assert 0 < len(errors) < QUERIES
    # The others go on.
    assert desk.status["subscriptions"] == QUERIES + 1 - len(errors)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "address"), [(CLIENT_KEYS, "198.51.100.2"), (MASTER_KEYS, "198.51.100.1")]
)
def test_who_is_alone_or_has_the_master_key_may_take_all_the_time(
    desk: Desk, games: Api, keys: dict[str, str], address: str
):
    ann, bob = at(desk.connect(**keys), address), at(desk.connect(), "198.51.100.2")
    numbers = costly_queries(ann)
    bob.subscribe(1, "Game")
    game = games.make("Game", list=numbers)
    assert sorted(ann.told(QUERIES)) == [
        ("create", number, game) for number in range(1, QUERIES + 1)
    ]
    assert bob.told(1) == [("create", 1, game)]


def test_a_subscription_that_ends_while_it_is_matched_is_told_nothing(desk: Desk, games: Api):
    ann, bob = desk.connect(), desk.connect()
    length = MOST // CONSTRAINTS // 2
    ann.subscribe(1, "Game", costly(length))
    bob.subscribe(1, "Game", costly(length))
    games.make("Game", list=[*range(1, length + 1)])
    ann.leave()
    assert bob.next("create")["requestId"] == 1
    assert desk.status["subscriptions"] == 1
