"""The memory that subscriptions take is limited, of an address and of all clients together."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from backend.kernel.errors import RateLimited, ServiceUnavailable
from realtime.core.effort import memory_of
from realtime.process.shares import Shares
from tests.realtime.livequery.harness import CLIENT_KEYS, MASTER_KEYS, Caller, EngineHarness
from tests.rest import Api

pytestmark = pytest.mark.django_db

MEMORY_LIMIT = 32  # MiB
OF_ALL = MEMORY_LIMIT * 1024 * 1024 // 4
OF_ADDRESS = OF_ALL // 8


@pytest.fixture
def harness(settings: Any, harnesses: Callable[[], EngineHarness]) -> EngineHarness:
    settings.MEMORY_LIMIT = MEMORY_LIMIT
    return harnesses()


def long(number: int) -> dict[str, Any]:
    """A question that takes more than a fifth of an address's share, and less than a fourth."""
    return {"name": {"$in": [f"name {number} {count}" for count in range(1150)]}}


def from_address(harness: EngineHarness, address: str, **keys: str) -> Caller:
    caller = harness.unauthenticated()
    caller.socket.address = address
    caller.send({"op": "connect", **(keys or CLIENT_KEYS)})
    caller.next("connected")
    return caller


def fill(harness: EngineHarness, address: str) -> list[Caller]:
    """Callers with as many of these queries as the address may have."""
    callers = [from_address(harness, address) for _ in range(4)]
    for number, caller in enumerate(callers):
        caller.subscribe(1, "Game", long(number))
    return callers


def test_the_query_of_these_tests_has_the_expected_size():
    message = {"op": "subscribe", "requestId": 1, "query": {"className": "Game", "where": long(1)}}
    assert OF_ADDRESS / 5 < memory_of(json.dumps(message)) < OF_ADDRESS / 4


def test_subscriptions_of_each_address_have_a_memory_limit(harness: EngineHarness, games: Api):
    fill(harness, "192.0.2.1")
    late = from_address(harness, "192.0.2.1")
    answer = late.request(1, "Game", long(5))
    assert (answer["op"], answer["code"]) == ("error", RateLimited.code)
    assert answer["error"] == "Subscriptions of this address are too large together."
    assert answer["reconnect"] is False
    # The connection continues, and a short query is accepted.
    late.subscribe(2, "Game", {"score": 1})
    from_address(harness, "192.0.2.2").subscribe(1, "Game", long(6))


def test_subscriptions_of_all_clients_have_a_memory_limit(harness: EngineHarness, games: Api):
    for number in range(7):
        fill(harness, f"192.0.2.{number}")
    answers = [
        from_address(harness, f"198.51.100.{number}").request(1, "Game", long(number))
        for number in range(12)
    ]
    assert harness.engine.memory.total <= OF_ALL
    refused = [answer for answer in answers if answer["op"] == "error"]
    assert {(answer["code"], answer["error"]) for answer in refused} == {
        (ServiceUnavailable.code, "Subscriptions of all clients are too large together.")
    }


@pytest.mark.parametrize("end", ["unsubscribe", "leave", "update", "refused update"])
def test_ended_subscriptions_free_memory(harness: EngineHarness, games: Api, end: str):
    callers = fill(harness, "192.0.2.1")
    for number in range(10, 13):
        late = from_address(harness, "192.0.2.1")
        assert late.rejection_code(1, "Game", long(number)) == RateLimited.code
        first = callers.pop(0)
        if end == "leave":
            first.leave()
        elif end == "unsubscribe":
            first.send({"op": "unsubscribe", "requestId": 1})
            first.next("unsubscribed")
        elif end == "update":
            first.subscribe(1, "Game", {"score": 1}, op="update")
        else:
            first.rejection_code(1, "Game", {"$or": 1}, op="update")
        late.subscribe(1, "Game", long(number))
        callers.append(late)


def test_a_replaced_subscription_is_not_counted_twice(harness: EngineHarness, games: Api):
    callers = fill(harness, "192.0.2.1")
    for number in range(10, 20):
        callers[0].subscribe(1, "Game", long(number), op="update")
    assert callers[1].rejection_code(2, "Game", long(20)) == RateLimited.code


def test_a_rejected_subscription_reserves_no_memory(harness: EngineHarness, games: Api):
    ann = from_address(harness, "192.0.2.1")
    for number in range(20):
        assert ann.rejection_code(1, "Game", {**long(number), "name.$bad": 1}) == 105
    fill(harness, "192.0.2.1")
    held = harness.engine.memory.total
    ann.leave()
    assert harness.engine.memory.total == held


def test_no_memory_is_reserved_after_all_clients_disconnect(harness: EngineHarness, games: Api):
    callers = [*fill(harness, "192.0.2.1"), from_address(harness, "192.0.2.1", **MASTER_KEYS)]
    callers[-1].subscribe(1, "Game", {"score": 1})
    for caller in callers:
        caller.leave()
    assert harness.engine.memory.total == 0


class Full(Shares):
    """A machine without memory for another subscription."""

    def reserve(self, address: str, size: int, replacing: int = 0) -> None:
        raise MemoryError


def test_a_memory_error_rejects_the_message_without_a_traceback(
    harness: EngineHarness,
    games: Api,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
):
    ann, memory = harness.connect(), harness.engine.memory
    harness.engine.memory = Full("Subscriptions", 0, 0)
    answer = ann.request(1, "Game")
    assert (answer["op"], answer["code"], answer["requestId"]) == ("error", 1, 1)
    assert answer["error"] == "There is no memory for this at the moment."
    harness.engine.memory = memory
    ann.subscribe(1, "Game")
    logged = capsys.readouterr()
    assert "Traceback" not in logged.out + logged.err + caplog.text
