"""What clients of live queries ask of the database has the limits of a request over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from backend.kernel.limits.statements import slow_statements
from backend.kernel.request_context import current
from functions import SubscribeRequest, before_subscribe
from tests.realtime.livequery.desk import MASTER_KEYS, Desk
from tests.rest import Api

pytestmark = pytest.mark.django_db


@pytest.fixture
def budgets(own_registrations: None) -> list[Any]:
    """The budgets with which the class was asked."""
    observed: list[Any] = []

    @before_subscribe("Game")
    def subscribed(request: SubscribeRequest) -> None:
        observed.append(current().budget)

    return observed


def test_a_client_has_the_budget_of_its_network(desk: Desk, games: Api, budgets: list[Any]):
    ann = desk.connect()
    ann.socket.address = "2001:db8::1"
    ann.subscribe(1, "Game")
    (budget,) = budgets
    assert budget.address == "2001:db8::/64"


def test_the_master_key_has_none(desk: Desk, games: Api, budgets: list[Any]):
    desk.connect(**MASTER_KEYS).subscribe(1, "Game")
    assert budgets == [None]


def test_an_address_with_its_share_of_slow_searches_is_told_to_wait(
    desk: Desk, games: Api, settings: Any
):
    settings.SERVICE = {**settings.SERVICE, "CLIENT_SLOW_REQUESTS": 1}
    games.make("Game", score=1)
    ann, bob, root = desk.connect(), desk.connect(), desk.connect(**MASTER_KEYS)
    bob.socket.address = "192.0.2.2"
    for item in (ann, bob, root):
        item.subscribe(1, "Game", {"score": 1})
    slow = slow_statements().enter(ann.socket.address, spent=1.0)
    try:
        ann.say({"op": "query", "requestId": 1})
        refused = ann.next("error", 1)
        assert (refused["code"], refused["reconnect"]) == (100, False)
        assert "slow requests" in refused["error"]
        for item in (bob, root):
            item.say({"op": "query", "requestId": 1})
            assert len(item.next("result", 1)["results"]) == 1
    finally:
        slow_statements().leave(slow)
    # The subscription goes on.
    game = games.make("Game", score=1)
    assert ann.told(1) == [("create", 1, game)]
