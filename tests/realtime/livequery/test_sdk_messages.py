"""Messages in the forms of official SDKs, and what their typed clients read from responses.

The forms are from the public source of ParseLiveQuery-Android 1.2.2, Parse-SDK-iOS-OSX 6.1.1,
Parse-Swift 4.14.2 and Parse-SDK-Flutter (dart 9.7.0). Only that of JavaScript runs here
(``tests/sdk``).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.realtime.livequery.harness import APPLICATION, Caller, EngineHarness
from tests.rest import Api

pytestmark = pytest.mark.django_db

INSTALLATION = "9d3f6f5c-5f3d-4c4e-8a44-2b8e4bb1a006"
CLIENT_KEY = {"clientKey": "test-client-key"}
CONNECT = {
    "android": APPLICATION,
    "ios": {**APPLICATION, "sessionToken": "", **CLIENT_KEY},
    "swift": {**APPLICATION, **CLIENT_KEY, "installationId": INSTALLATION},
    "flutter": {**APPLICATION, **CLIENT_KEY, "installationId": INSTALLATION},
}
SUBSCRIBE: dict[str, dict[str, Any]] = {
    "android": {},
    "ios": {},
    "swift": {"fields": ["score"]},
    "flutter": {"fields": ["score"]},
}


@pytest.fixture(autouse=True)
def default_key_pairs(settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "LIVE_QUERY_KEY_PAIRS": ()}


def connected(harness: EngineHarness, sdk: str) -> Caller:
    caller = harness.unauthenticated()
    caller.send({"op": "connect", **CONNECT[sdk]})
    response = caller.next("connected")
    assert isinstance(response["clientId"], str)
    assert isinstance(response.get("installationId", ""), str)
    return caller


def subscribe(caller: Caller, sdk: str, op: str = "subscribe", **more: Any) -> dict[str, Any]:
    query = {"className": "Game", "where": {"score": {"$gt": 1}}, **SUBSCRIBE[sdk]}
    caller.send({"op": op, "requestId": 1, "query": query, **more})
    return caller.next()


@pytest.mark.parametrize("sdk", CONNECT)
def test_a_client_without_a_user_gets_events(harness: EngineHarness, games: Api, sdk):
    caller = connected(harness, sdk)
    assert subscribe(caller, sdk)["op"] == "subscribed"
    game = games.make("Game", score=2, name="a")
    created = caller.next("create", 1)
    assert created["object"]["objectId"] == game
    assert created["object"]["className"] == "Game"
    assert ("name" in created["object"]) == ("fields" not in SUBSCRIBE[sdk])
    games.put(f"/classes/Game/{game}", {"score": 1})
    left = caller.next("leave", 1)
    assert (left["object"]["objectId"], left["original"]["score"]) == (game, 2)
    games.put(f"/classes/Game/{game}", {"score": 3})
    assert caller.next("enter", 1)["object"]["score"] == 3
    games.delete(f"/classes/Game/{game}")
    assert caller.next("delete", 1)["object"]["score"] == 3
    caller.send({"op": "unsubscribe", "requestId": 1})
    assert caller.next("unsubscribed", 1)["requestId"] == 1


@pytest.mark.parametrize("sdk", CONNECT)
def test_a_user_has_the_token_in_each_message(harness: EngineHarness, games: Api, person, sdk):
    ann = person("ann")
    caller = harness.unauthenticated()
    caller.send({"op": "connect", **CONNECT[sdk], "sessionToken": ann.token})
    caller.next("connected")
    assert subscribe(caller, sdk, sessionToken=ann.token)["op"] == "subscribed"
    if sdk == "ios":  # its updates have no token
        assert subscribe(caller, sdk, "update")["op"] == "subscribed"
    game = games.make("Game", score=2, ACL={ann.user_id: {"read": True}})
    assert caller.next("create", 1)["object"]["objectId"] == game


@pytest.mark.parametrize("sdk", CONNECT)
def test_an_empty_token_of_a_subscription_is_none(harness: EngineHarness, games: Api, sdk):
    caller = connected(harness, sdk)
    assert subscribe(caller, sdk, sessionToken="")["op"] == "subscribed"


def test_an_error_has_what_typed_clients_decode(harness: EngineHarness, games: Api):
    caller = connected(harness, "swift")
    query = {"className": "Game", "where": {"score": {"$what": 1}}}
    caller.send({"op": "subscribe", "requestId": 1, "query": query})
    error = caller.next("error", 1)
    assert (type(error["code"]), type(error["error"]), type(error["reconnect"])) == (int, str, bool)
