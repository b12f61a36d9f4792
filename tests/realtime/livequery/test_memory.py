"""The memory that subscriptions take is limited, of an address and of all clients together."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from backend.kernel.errors import RateLimited, ServiceUnavailable
from realtime.core.effort import memory_of
from realtime.process.shares import Shares
from tests.realtime.livequery.desk import CLIENT_KEYS, MASTER_KEYS, Caller, Desk
from tests.rest import Api

pytestmark = pytest.mark.django_db

MEMORY_LIMIT = 32  # MiB
OF_ALL = MEMORY_LIMIT * 1024 * 1024 // 4
OF_ADDRESS = OF_ALL // 8


@pytest.fixture
def desk(settings: Any, desks: Callable[[], Desk]) -> Desk:
    settings.MEMORY_LIMIT = MEMORY_LIMIT
    return desks()


def long(number: int) -> dict[str, Any]:
    """A question that takes more than a fifth of an address's share, and less than a fourth."""
    return {"name": {"$in": [f"name {number} {count}" for count in range(1150)]}}


def from_address(desk: Desk, address: str, **keys: str) -> Caller:
    caller = desk.stranger()
    caller.socket.address = address
    caller.say({"op": "connect", **(keys or CLIENT_KEYS)})
    caller.next("connected")
    return caller


def fill(desk: Desk, address: str) -> list[Caller]:
    """Callers who hold as much of these questions as the address may."""
    callers = [from_address(desk, address) for _ in range(4)]
    for number, caller in enumerate(callers):
        caller.subscribe(1, "Game", long(number))
    return callers


def test_a_question_is_as_long_as_these_tests_need():
    message = {"op": "subscribe", "requestId": 1, "query": {"className": "Game", "where": long(1)}}
    assert OF_ADDRESS / 5 < memory_of(json.dumps(message)) < OF_ADDRESS / 4


def test_an_address_has_a_share_and_others_have_theirs(desk: Desk, games: Api):
    fill(desk, "192.0.2.1")
    late = from_address(desk, "192.0.2.1")
    answer = late.ask(1, "Game", long(5))
    assert (answer["op"], answer["code"]) == ("error", RateLimited.code)
    assert answer["error"] == "Subscriptions of this address are too large together."
    assert answer["reconnect"] is False
    # The connection goes on, and what is short is taken.
    late.subscribe(2, "Game", {"score": 1})
    from_address(desk, "192.0.2.2").subscribe(1, "Game", long(6))


def test_all_clients_together_have_a_limit(desk: Desk, games: Api):
    for number in range(7):
        fill(desk, f"192.0.2.{number}")
    answers = [
        from_address(desk, f"198.51.100.{number}").ask(1, "Game", long(number))
        for number in range(12)
    ]
    assert desk.engine.memory.total <= OF_ALL
    refused = [answer for answer in answers if answer["op"] == "error"]
    assert {(answer["code"], answer["error"]) for answer in refused} == {
        (ServiceUnavailable.code, "Subscriptions of all clients are too large together.")
    }


@pytest.mark.parametrize("end", ["unsubscribe", "leave", "update", "refused update"])
def test_what_ends_makes_room(desk: Desk, games: Api, end: str):
    callers = fill(desk, "192.0.2.1")
    for number in range(10, 13):
        late = from_address(desk, "192.0.2.1")
        assert late.refused(1, "Game", long(number)) == RateLimited.code
        first = callers.pop(0)
        if end == "leave":
            first.leave()
        elif end == "unsubscribe":
            first.say({"op": "unsubscribe", "requestId": 1})
            first.next("unsubscribed")
        elif end == "update":
            first.subscribe(1, "Game", {"score": 1}, op="update")
        else:
            first.refused(1, "Game", {"$or": 1}, op="update")
        late.subscribe(1, "Game", long(number))
        callers.append(late)


def test_what_takes_the_place_of_another_is_counted_instead_of_it(desk: Desk, games: Api):
    callers = fill(desk, "192.0.2.1")
    for number in range(10, 20):
        callers[0].subscribe(1, "Game", long(number), op="update")
    assert callers[1].refused(2, "Game", long(20)) == RateLimited.code


def test_a_refused_subscription_holds_nothing(desk: Desk, games: Api):
    ann = from_address(desk, "192.0.2.1")
    for number in range(20):
        assert ann.refused(1, "Game", {**long(number), "name.$bad": 1}) == 105
    fill(desk, "192.0.2.1")
    held = desk.engine.memory.total
    ann.leave()
    assert desk.engine.memory.total == held


def test_nothing_is_held_when_all_are_gone(desk: Desk, games: Api):
    callers = [*fill(desk, "192.0.2.1"), from_address(desk, "192.0.2.1", **MASTER_KEYS)]
    callers[-1].subscribe(1, "Game", {"score": 1})
    for caller in callers:
        caller.leave()
    assert desk.engine.memory.total == 0


class Full(Shares):
    """A machine without memory for another subscription."""

    def take(self, address: str, size: int, instead_of: int = 0) -> None:
        raise MemoryError


def test_for_want_of_memory_a_message_is_refused_without_a_traceback(
    desk: Desk, games: Api, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    ann, memory = desk.connect(), desk.engine.memory
    desk.engine.memory = Full("Subscriptions", 0, 0)
    answer = ann.ask(1, "Game")
    assert (answer["op"], answer["code"], answer["requestId"]) == ("error", 1, 1)
    assert answer["error"] == "There is no memory for this at the moment."
    desk.engine.memory = memory
    ann.subscribe(1, "Game")
    logged = capsys.readouterr()
    assert "Traceback" not in logged.out + logged.err + caplog.text
