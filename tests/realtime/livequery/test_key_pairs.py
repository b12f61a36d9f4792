"""Which keys a client of live queries has to send, and what the master key permits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.realtime.livequery.harness import (
    APPLICATION,
    CLIENT_KEYS,
    MASTER_KEYS,
    READER_KEYS,
    EngineHarness,
)
from tests.rest import Api

pytestmark = pytest.mark.django_db

NO_KEYS = {
    **APPLICATION,
    "javascriptKey": None,
    "clientKey": None,
    "windowsKey": None,
    "restAPIKey": None,
    "masterKey": None,
    "sessionToken": None,
    "installationId": None,
}


@pytest.fixture
def key_pairs(settings: Any) -> Any:
    def use(*names: str, **others: Any) -> None:
        settings.SERVICE = {**settings.SERVICE, "LIVE_QUERY_KEY_PAIRS": names, **others}

    return use


def refusal(harness: EngineHarness, keys: dict[str, Any]) -> dict[str, Any]:
    client = harness.unauthenticated()
    client.send({"op": "connect", **keys})
    return client.next("error")


@pytest.mark.parametrize("keys", [APPLICATION, NO_KEYS, {**APPLICATION, "javascriptKey": ""}])
def test_without_key_pairs_a_client_needs_only_the_application_id(
    harness: EngineHarness, games: Api, key_pairs, keys
):
    key_pairs()
    ann = harness.connect(**keys)
    ann.subscribe(1, "Game")
    games.make("Game", ACL={})
    game = games.make("Game")
    assert ann.next_events(1) == [("create", 1, game)]


@pytest.mark.parametrize(
    "keys",
    [
        {"applicationId": "other"},
        {"applicationId": ""},
        {**APPLICATION, "javascriptKey": "wrong"},
        {**APPLICATION, "masterKey": "wrong"},
    ],
)
def test_a_wrong_application_or_key_is_always_rejected(harness: EngineHarness, key_pairs, keys):
    key_pairs()
    assert refusal(harness, keys)["code"] == 4


@pytest.mark.parametrize("keys", [MASTER_KEYS, READER_KEYS, {**MASTER_KEYS, **CLIENT_KEYS}])
@pytest.mark.parametrize("names", [(), ("javascriptKey", "restAPIKey")])
def test_a_master_key_that_is_no_key_pair_has_no_power(
    harness: EngineHarness, games: Api, person, key_pairs, keys, names
):
    key_pairs(*names)
    if names and "javascriptKey" not in keys:
        assert refusal(harness, keys)["code"] == 4
        return
    ann = person("ann")
    stranger, owner = harness.connect(**keys), harness.connect(**keys, sessionToken=ann.token)
    stranger.subscribe(1, "Game")
    owner.subscribe(1, "Game")
    hers = games.make("Game", ACL={ann.user_id: {"read": True}})
    games.make("Game", ACL={})
    last = games.make("Game")
    assert owner.next_events(2) == [("create", 1, hers), ("create", 1, last)]
    assert stranger.next_events(1) == [("create", 1, last)]
    stranger.send({"op": "query", "requestId": 1})
    assert [game["objectId"] for game in stranger.next("result")["results"]] == [last]


@pytest.mark.parametrize("keys", [MASTER_KEYS, READER_KEYS])
def test_a_master_key_that_is_a_key_pair_sees_everything(
    harness: EngineHarness, games: Api, key_pairs, keys
):
    key_pairs("masterKey")
    ann = harness.connect(**keys)
    ann.subscribe(1, "Game")
    game = games.make("Game", ACL={})
    assert ann.next_events(1) == [("create", 1, game)]


def test_one_of_the_key_pairs_is_required(harness: EngineHarness, key_pairs):
    key_pairs("javascriptKey", "clientKey")
    assert harness.connect(**CLIENT_KEYS).client_id
    assert harness.connect(**APPLICATION, clientKey="test-client-key").client_id
    for keys in (
        APPLICATION,
        NO_KEYS,
        MASTER_KEYS,
        {**APPLICATION, "restAPIKey": "test-rest-key"},
        {**APPLICATION, "windowsKey": "test-client-key"},
        {**APPLICATION, "restAPIKey": "test-rest-key", "javascriptKey": "wrong"},
    ):
        assert refusal(harness, keys)["code"] == 4, keys


def test_ws_require_key_makes_any_key_necessary(harness: EngineHarness, key_pairs):
    key_pairs(WS_REQUIRE_KEY=True)
    assert refusal(harness, APPLICATION)["code"] == 4
    assert harness.connect(**APPLICATION, restAPIKey="test-rest-key").client_id
    assert harness.connect(**MASTER_KEYS).client_id
