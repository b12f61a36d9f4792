"""One address can't keep live queries from others, and nothing is done for clients who are gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from functions import SubscribeRequest, before_subscribe
from tests.realtime.in_process import PATIENCE
from tests.subscribers import Realtime, realtime_process

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db(transaction=True),
]

FLOOD = 40


@pytest.fixture
def realtime(db: None) -> Iterator[Realtime]:
    with realtime_process() as process:
        yield process


class Slow:
    """A class whose subscriptions take as long as the test wants."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.begun = threading.Semaphore(0)
        self.count = 0

        @before_subscribe("Slow")
        def wait(request: SubscribeRequest) -> None:
            self.count += 1
            self.begun.release()
            assert self.may_go_on.wait(PATIENCE)


@pytest.fixture
def slow() -> Iterator[Slow]:
    results = Slow()
    yield results
    results.may_go_on.set()


def test_a_flood_of_slow_questions_holds_up_only_its_own_address(realtime, master, slow):
    master.make("Slow", name="first")
    master.make("Post", name="first")
    crowd = [realtime.subscriber(address="192.0.2.1") for _ in range(FLOOD)]
    for item in crowd:
        item.say(op="subscribe", requestId=1, query={"className": "Slow", "where": {}})
        item.say(op="query", requestId=1)
    for _ in range(2):
        assert slow.begun.acquire(timeout=PATIENCE)
    # While the flood waits, another client connects, asks and gets its answer.
    other = realtime.subscriber(address="192.0.2.2")
    other.subscribe(1, "Post")
    other.say(op="query", requestId=1)
    assert [item["name"] for item in other.next()["results"]] == ["first"]
    assert slow.count == 2
    slow.may_go_on.set()
    assert [item.next()["op"] for item in crowd] == ["subscribed"] * FLOOD


def test_what_a_flood_has_asked_ends_with_its_connections(realtime, master, slow):
    master.make("Slow", name="first")
    crowd = [realtime.subscriber(address="192.0.2.1") for _ in range(FLOOD)]
    asking, waiting = crowd[:2], crowd[2:]
    for item in asking:
        item.say(op="subscribe", requestId=1, query={"className": "Slow", "where": {}})
        assert slow.begun.acquire(timeout=PATIENCE)
    for item in waiting:
        item.say(op="subscribe", requestId=1, query={"className": "Slow", "where": {}})
        for _ in range(20):
            item.say(op="query", requestId=1)
    for item in waiting:
        item.close()
    slow.may_go_on.set()
    assert [item.next()["op"] for item in asking] == ["subscribed"] * 2
    # A further request of the same address would have its turn after all of the others.
    late = realtime.subscriber(address="192.0.2.1")
    late.subscribe(1, "Slow")
    assert slow.count == 3
