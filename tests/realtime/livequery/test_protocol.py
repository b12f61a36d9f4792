"""Parse's protocol of live queries, message by message: what is answered, and what is refused."""

from __future__ import annotations

import pytest

from realtime.sockets.connections import POLICY
from tests.realtime.livequery.harness import (
    APPLICATION,
    CLIENT_KEYS,
    MASTER_KEYS,
    READER_KEYS,
    EngineHarness,
)
from tests.rest import Api

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "keys",
    [
        {"javascriptKey": "test-javascript-key"},
        {"restAPIKey": "test-rest-key"},
        {"clientKey": "test-client-key"},
        {"windowsKey": "test-client-key"},
        {"masterKey": "test-master-key"},
        {"masterKey": "test-read-only-key"},
        {"javascriptKey": "test-javascript-key", "clientKey": "wrong"},
    ],
)
def test_a_client_connects_with_any_key_of_the_application(harness: EngineHarness, keys):
    assert harness.connect(**APPLICATION, **keys).client_id


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"javascriptKey": "wrong"},
        {"masterKey": "wrong"},
        {"masterKey": "wrong", "javascriptKey": "test-javascript-key"},
        {"javascriptKey": "test-javascript-key", "applicationId": "other"},
        {"javascriptKey": "test-master-key"},
    ],
)
def test_a_client_with_a_wrong_key_gets_an_error_and_is_closed(harness: EngineHarness, keys):
    ann = harness.unauthenticated()
    ann.send({"op": "connect", **APPLICATION, **keys})
    refusal = ann.next("error")
    assert (refusal["code"], refusal["reconnect"]) == (4, False)
    assert "requestId" not in refusal
    assert ann.socket.closed_with == POLICY
    assert harness.status["clients"] == 0


@pytest.mark.parametrize("token", ["r:" + "0" * 32, "nonsense", " "])
def test_a_client_with_an_invalid_session_needs_one_for_each_subscription(
    harness: EngineHarness, games: Api, person, token
):
    ann = person("ann")
    client = harness.connect(token)
    assert client.rejection_code(1, "Game") == 209
    assert client.rejection_code(1, "Game", token=token) == 209
    client.subscribe(2, "Game", token=ann.token)
    game = games.make("Game", ACL={ann.user_id: {"read": True}})
    assert client.next_events(1) == [("create", 2, game)]
    assert client.rejection_code(3, "Game", token="") == 209
    assert harness.status["subscriptions"] == 1


def test_a_subscription_can_have_its_own_session(harness: EngineHarness, games: Api, person):
    ann, bob = person("ann"), person("bob")
    caller = harness.connect(bob.token)
    caller.subscribe(1, "Game")
    caller.subscribe(2, "Game", token=ann.token)
    assert caller.rejection_code(3, "Game", token="r:nobody") == 209
    hers = games.make("Game", ACL={ann.user_id: {"read": True}})
    his = games.make("Game", ACL={bob.user_id: {"read": True}})
    assert caller.next_events(2) == [("create", 2, hers), ("create", 1, his)]
    ann.post("/logout")
    assert caller.next("error", 2)["code"] == 209
    caller.send({"op": "unsubscribe", "requestId": 2})
    assert caller.next("error", 2)["code"] == 2
    his = games.make("Game", ACL={bob.user_id: {"read": True}})
    assert caller.next_events(1) == [("create", 1, his)]
    bob.post("/logout")
    assert caller.next("error", 1)["code"] == 209
    assert caller.rejection_code(1, "Game") == 209
    assert harness.status["sessions"] == 0


def test_the_master_key_is_accepted_only_from_allowed_addresses(harness: EngineHarness, settings):
    settings.SERVICE = {**settings.SERVICE, "MASTER_KEY_IPS": ("10.0.0.0/8",)}
    ann = harness.unauthenticated()
    ann.send({"op": "connect", **MASTER_KEYS})
    assert ann.next("error")["code"] == 4


def test_connect_must_be_first_and_only_once(harness: EngineHarness):
    ann = harness.unauthenticated()
    for op in ("unsubscribe", "query"):
        ann.send({"op": op, "requestId": 1})
        assert ann.next("error", 1)["code"] == 2
    ann.send({"op": "subscribe", "requestId": 1, "query": {"className": "Game", "where": {}}})
    assert ann.next("error", 1)["code"] == 2
    ann.send({"op": "connect", **CLIENT_KEYS})
    ann.next("connected")
    ann.send({"op": "connect", **CLIENT_KEYS})
    assert ann.next("error")["code"] == 1
    assert ann.socket.closed_with is None
    assert ann.socket.junk_count == 4


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"op":"connect"}', '{"op":1}'])
def test_invalid_messages_are_answered_and_counted(harness: EngineHarness, text):
    ann = harness.connect()
    ann.send(text)
    error = ann.next("error")
    assert (error["code"], error["reconnect"]) == (1, False)
    assert ann.socket.junk_count == 1


def test_an_unknown_key_of_a_query_makes_an_sdk_reconnect(harness: EngineHarness, games: Api):
    ann = harness.connect()
    query = {"className": "Game", "where": {}, "unknown": 1}
    ann.send({"op": "subscribe", "requestId": 1, "query": query})
    error = ann.next("error", 1)
    assert (error["code"], error["reconnect"]) == (1, True)
    assert ann.socket.closed_with is None
    ann.subscribe(1, "Game")


def test_sessions_are_only_for_clients_with_a_session(harness: EngineHarness, person):
    assert harness.connect().rejection_code(1, "_Session") == 209
    ann = person("ann")
    caller = harness.connect(ann.token)
    caller.subscribe(1, "_Session")
    other = harness.connect()
    other.subscribe(1, "_Session", token=ann.token)


def test_an_unknown_op_is_rejected(harness: EngineHarness):
    ann = harness.connect()
    ann.send({"op": "publish", "requestId": 3})
    assert ann.next("error", 3)["code"] == 3


def test_after_unsubscribing_nothing_is_sent(harness: EngineHarness, games: Api):
    ann = harness.connect()
    ann.subscribe(1, "Game")
    ann.subscribe(2, "Game", {"score": 2})
    ann.send({"op": "unsubscribe", "requestId": 1})
    answer = ann.next("unsubscribed", 1)
    assert answer["clientId"] == ann.client_id
    games.make("Game", score=1)
    last = games.make("Game", score=2)
    assert ann.next_events(1) == [("create", 2, last)]
    ann.send({"op": "unsubscribe", "requestId": 1})
    assert ann.next("error", 1)["code"] == 2


def test_a_subscription_is_replaced_by_update_and_by_its_request_id(
    harness: EngineHarness, games: Api
):
    ann = harness.connect()
    ann.subscribe(1, "Game", {"score": 1})
    ann.subscribe(1, "Game", {"score": 2}, op="update")
    games.make("Game", score=1)
    second = games.make("Game", score=2)
    assert ann.next_events(1) == [("create", 1, second)]
    ann.subscribe(1, "Game", {"score": 3}, keys=["score"])
    games.make("Game", score=2)
    games.make("Game", score=3, name="c")
    assert "name" not in ann.next("create", 1)["object"]
    assert harness.status["subscriptions"] == 1
    # One that is refused leaves nothing behind.
    assert ann.rejection_code(1, "Game", {"score": {"$what": 1}}) == 107
    assert harness.status["subscriptions"] == 0


def test_an_update_of_an_unknown_request_id_subscribes(harness: EngineHarness, games: Api):
    ann = harness.connect()
    ann.subscribe(9, "Game", op="update")
    game = games.make("Game")
    assert ann.next_events(1) == [("create", 9, game)]


def test_query_returns_the_current_results_of_a_subscription(harness: EngineHarness, games: Api):
    ann = harness.connect(**CLIENT_KEYS, installationId="phone-1")
    games.make("Game", score=1)
    game = games.make("Game", score=2, name="b")
    ann.subscribe(1, "Game", {"score": {"$gt": 1}}, keys=["score"])
    ann.send({"op": "query", "requestId": 1})
    result = ann.next("result", 1)
    assert result["installationId"] == "phone-1"
    [results] = result["results"]
    assert (results["className"], results["objectId"], results["score"]) == ("Game", game, 2)
    assert "name" not in results
    ann.send({"op": "query", "requestId": 2})
    assert ann.next("error", 2)["code"] == 2


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ({"score": {"$what": 1}}, 107),
        ({"not a name": 1}, 105),
        ({"name": {"$regex": "("}}, None),
        ({"name": {"$regex": "a", "$options": "q"}}, 102),
        ({"$or": 1}, 102),
        ({"owner": {"$inQuery": {"className": "Game", "where": {}}}}, 102),
        ({"owner": {"$notInQuery": {"className": "Game", "where": {}}}}, 102),
        ({"a": {"$select": {"query": {"className": "Game", "where": {}}, "key": "b"}}}, 102),
        (
            {
                "$relatedTo": {
                    "object": {"__type": "Pointer", "className": "Game", "objectId": "a"},
                    "key": "likes",
                }
            },
            102,
        ),
    ],
)
def test_a_where_that_cannot_be_matched_is_rejected(
    harness: EngineHarness, games: Api, where, code
):
    ann = harness.connect()
    refused = ann.rejection_code(1, "Game", where)
    assert code is None or refused == code
    nested: dict = where
    for _ in range(15):
        nested = {"$or": [nested]}
    assert ann.rejection_code(1, "Game", nested) in (102, 107)


def test_names_of_fields_and_classes_are_checked(harness: EngineHarness, games: Api):
    ann = harness.connect()
    assert ann.rejection_code(1, "Game", keys=["a b"]) == 105
    assert ann.rejection_code(1, "Game", watch=["$score"]) == 105
    assert ann.rejection_code(1, "not a class") == 103
    assert ann.rejection_code(1, "_Join:likes:Game") == 103


def test_subscriptions_of_a_connection_are_limited(harness: EngineHarness, games: Api, settings):
    settings.SERVICE = {**settings.SERVICE, "LIVE_QUERY_MAX_SUBSCRIPTIONS": 2}
    ann = harness.connect()
    ann.subscribe(1, "Game")
    ann.subscribe(2, "Game")
    assert ann.rejection_code(3, "Game") == 119
    ann.subscribe(2, "Game", {"score": 1})
    ann.send({"op": "unsubscribe", "requestId": 1})
    ann.next("unsubscribed")
    ann.subscribe(3, "Game")


def test_subscriptions_and_queries_of_an_address_have_a_rate_limit(
    harness: EngineHarness, games: Api, settings
):
    flood = {"path": "/subscriptions", "per": "ip", "window": 60, "approximate": True}
    settings.SERVICE = {**settings.SERVICE, "RATE_LIMITS": [{**flood, "count": 3}]}
    ann, bob = harness.connect(), harness.connect()
    ann.subscribe(1, "Game")
    bob.subscribe(1, "Game")
    ann.send({"op": "query", "requestId": 1})
    ann.next("result")
    assert ann.rejection_code(2, "Game") == bob.rejection_code(2, "Game") == 100
    ann.send({"op": "query", "requestId": 1})
    assert ann.next("error")["code"] == 100


def test_the_total_length_of_subscriptions_of_a_connection_is_limited(
    harness: EngineHarness, games: Api, settings
):
    settings.SERVICE = {**settings.SERVICE, "WS_MESSAGE_SIZE": 1024}
    ann = harness.connect()
    long = {"name": {"$in": ["x" * 700]}}
    for number in range(5):
        ann.subscribe(number, "Game", long)
    assert ann.rejection_code(5, "Game", long) == 119
    ann.subscribe(4, "Game", long)
    ann.send({"op": "unsubscribe", "requestId": 1})
    ann.next("unsubscribed")
    ann.subscribe(5, "Game", long)


def test_live_queries_are_limited_to_the_configured_classes(
    harness: EngineHarness, games: Api, settings
):
    ann = harness.connect(**MASTER_KEYS)
    settings.SERVICE = {**settings.SERVICE, "LIVE_QUERY_CLASSES": ("Game",)}
    ann.subscribe(1, "Game")
    assert ann.rejection_code(2, "Other") == 119
    settings.SERVICE = {**settings.SERVICE, "LIVE_QUERY_CLASSES": ("none",)}
    assert ann.rejection_code(3, "Game") == 119


def test_the_read_only_master_key_reads(harness: EngineHarness, games: Api):
    ann = harness.connect(**READER_KEYS)
    ann.subscribe(1, "Game")
    game = games.make("Game", ACL={})
    assert ann.next_events(1) == [("create", 1, game)]


def test_a_disconnected_client_leaves_nothing_behind(harness: EngineHarness, games: Api, person):
    ann = person("ann")
    item, other = harness.connect(ann.token), harness.connect(ann.token)
    for number in (1, 2, 3):
        item.subscribe(number, "Game", {"score": number}, token=ann.token)
        other.subscribe(number, "Game")
    item.leave()
    assert harness.status["subscriptions"] == 3
    assert harness.status["sessions"] == 1
    other.leave()
    status = harness.status
    figures = ("clients", "subscriptions", "groups", "classes", "sessions")
    assert [status[name] for name in figures] == [0] * 5


def test_equal_subscriptions_are_one_group(harness: EngineHarness, games: Api, person):
    ann, bob = person("ann"), person("bob")
    clients = [harness.connect(), harness.connect(ann.token), harness.connect(bob.token)]
    for client in clients:
        client.subscribe(1, "Game", {"score": 1})
        client.subscribe(2, "Game", {"score": 1}, keys=["score"])
    assert harness.status["groups"] == 2
    game = games.make("Game", score=1, ACL={bob.user_id: {"read": True}})
    assert sorted(clients[2].next_events(2)) == [("create", 1, game), ("create", 2, game)]
    last = games.make("Game", score=1)
    for client in clients:
        assert sorted(client.next_events(2)) == [("create", 1, last), ("create", 2, last)]
