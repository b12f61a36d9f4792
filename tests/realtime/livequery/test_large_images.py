"""Live queries of objects that are too large to be read whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from objects.changes.images import LARGEST
from tests.realtime.livequery.harness import EngineHarness
from tests.rest import Api

pytestmark = pytest.mark.django_db

LONG = list(range(1_000_000, 1_000_000 + LARGEST // 10))


@pytest.mark.parametrize(
    ("query", "gets_event"),
    [
        ({"where": {}, "keys": ["n"]}, True),
        ({"where": {"n": {"$gt": 0}}, "keys": ["n"], "watch": ["n"]}, True),
        ({"where": {}}, False),
        ({"where": {}, "keys": ["list"]}, False),
        ({"where": {"list": 1_000_005}, "keys": ["n"]}, False),
        ({"where": {"list": {"$gt": 5}}, "keys": ["n"]}, False),
        ({"where": {}, "keys": ["n"], "watch": ["list"]}, False),
    ],
)
def test_a_subscription_gets_the_event_or_an_error(
    harness: EngineHarness, games: Api, query: dict[str, Any], gets_event: bool
):
    game = games.make("Game", list=LONG, n=1)
    ann = harness.connect()
    ann.send({"op": "subscribe", "requestId": 1, "query": {"className": "Game", **query}})
    ann.next("subscribed")
    games.put(f"/classes/Game/{game}", {"n": 2})
    harness.wake()
    if gets_event:
        event = ann.next("update")
        assert (event["object"]["n"], event["original"]["n"]) == (2, 1)
        assert "list" not in json.dumps(event)
    else:
        error = ann.next("error")
        assert (error["code"], error["requestId"], error["reconnect"]) == (116, 1, False)
        assert game in error["error"]


def test_who_may_not_read_the_object_gets_neither(harness: EngineHarness, games: Api):
    acl = {"someone": {"read": True}}
    game = games.make("Game", list=LONG, n=1, ACL=acl)
    ann = harness.connect()
    ann.subscribe(1, "Game", {})
    games.put(f"/classes/Game/{game}", {"n": 2})
    other = games.make("Game", n=3)
    assert ann.next_events(1) == [("create", 1, other)]
