"""What subscribers get of committed changes, and in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from objects.users.models import User
from tests.realtime.livequery.harness import MASTER_KEYS, EngineHarness
from tests.rest import Api

pytestmark = pytest.mark.django_db

HIGH = {"score": {"$gt": 5}}


def put(api: Api, object_id: str, **fields: Any) -> None:
    assert api.put(f"/classes/Game/{object_id}", fields).status == 200


def test_create_update_leave_enter_and_delete_are_sent(harness: EngineHarness, games: Api):
    ann = harness.connect()
    ann.subscribe(1, "Game", HIGH)
    game = games.make("Game", score=6, name="a")
    for score in (7, 1, 2, 9):
        put(games, game, score=score)
    games.delete(f"/classes/Game/{game}")
    events = [ann.next() for _ in range(5)]
    assert [event["op"] for event in events] == ["create", "update", "leave", "enter", "delete"]
    assert [event["object"]["score"] for event in events] == [6, 7, 1, 9, 9]
    assert [event.get("original", {}).get("score") for event in events] == [None, 6, 7, 2, None]
    assert {event["requestId"] for event in events} == {1}
    assert {event["clientId"] for event in events} == {ann.client_id}
    assert "installationId" not in events[0]


def test_an_object_is_shown_as_over_rest(harness: EngineHarness, games: Api):
    ann = harness.connect(**MASTER_KEYS, installationId="phone-1")
    ann.subscribe(1, "Game")
    file = games.call("POST", "/files/a.txt", raw=b"text", content_type="text/plain").json
    fields = {
        "name": 'é "quoted" \U0001f600',
        "score": 1.5,
        "big": 2**60,
        "on": True,
        "none": None,
        "list": [1, "two", {"three": [3]}],
        "info": {"a": {"b": 1}},
        "when": {"__type": "Date", "iso": "2026-01-02T03:04:05.678Z"},
        "place": {"__type": "GeoPoint", "latitude": 10, "longitude": 20},
        "bytes": {"__type": "Bytes", "base64": "AAEC"},
        "owner": {"__type": "Pointer", "className": "Other", "objectId": "abcdefghij"},
        "file": {"__type": "File", "name": file["name"]},
        "likes": {
            "__op": "AddRelation",
            "objects": [{"__type": "Pointer", "className": "Other", "objectId": "abcdefghij"}],
        },
        "ACL": {"*": {"read": True}, "role:admins": {"write": True}},
    }
    game = games.make("Game", **fields)
    event = ann.next("create", 1)
    assert event["installationId"] == "phone-1"
    stored = games.get(f"/classes/Game/{game}").json
    assert event["object"] == {"className": "Game", **stored}
    assert event["object"]["file"]["url"].startswith("http")
    ann.subscribe(2, "Game", keys=["name", "info.a", "nothing"])
    put(games, game, name="b")
    always = {"className", "objectId", "createdAt", "updatedAt", "ACL"}
    by_request = {}
    for _ in range(2):
        event = ann.next("update")
        by_request[event["requestId"]] = event
    assert by_request[1]["original"] == {"className": "Game", **stored}
    assert by_request[2]["object"].keys() == always | {"name", "info"}
    assert by_request[2]["original"].keys() == always | {"name", "info"}
    assert by_request[2]["original"]["name"] == fields["name"]


def test_objects_of_a_model_are_shown_as_over_rest(harness: EngineHarness, games: Api):
    ann = harness.connect(**MASTER_KEYS)
    ann.subscribe(1, "Book", {"author": author("abcdefghij"), "pages": {"$gt": 100}})
    fields = {
        "title": "é",
        "pages": 300,
        "price": 12.5,
        "inPrint": True,
        "published": {"__type": "Date", "iso": "2026-01-02T03:04:05.678Z"},
        "author": author("abcdefghij"),
        "tags": ["a", {"b": 1}],
        "cover": {"colour": "red"},
        "more": [1, 2],
    }
    book = games.make("Book", **fields)
    made = ann.next("create", 1)["object"]
    assert made == {"className": "Book", **games.get(f"/classes/Book/{book}").json}
    assert games.put(f"/classes/Book/{book}", {"author": author("klmnopqrst")}).status == 200
    assert ann.next("leave", 1)["original"] == made
    games.delete(f"/classes/Book/{book}")


def author(object_id: str) -> dict[str, str]:
    return {"__type": "Pointer", "className": "Author", "objectId": object_id}


def test_each_subscription_gets_changes_in_commit_order(harness: EngineHarness, games: Api):
    ann, bob = harness.connect(), harness.connect()
    ann.subscribe(1, "Game", HIGH)
    ann.subscribe(2, "Game")
    bob.subscribe(1, "Game", {"name": "b"})
    made = [games.make("Game", score=score, name="ab"[score % 2]) for score in range(4, 9)]
    requests = [
        {"method": "PUT", "path": f"/api/classes/Game/{item}", "body": {"score": number}}
        for number, item in enumerate(made)
    ]
    assert games.post("/batch", {"requests": requests, "transaction": True}).status == 200
    event = ann.next_events(3 + 5 + 5 + 3)
    assert [(op, item) for op, request, item in event if request == 2] == [
        *(("create", item) for item in made),
        *(("update", item) for item in made),
    ]
    assert [(op, item) for op, request, item in event if request == 1] == [
        *(("create", item) for item in made[2:]),
        *(("leave", item) for item in made[2:]),
    ]
    assert bob.next_events(4) == [(op, 1, made[n]) for op in ("create", "update") for n in (1, 3)]


def test_a_rolled_back_change_is_not_sent(harness: EngineHarness, games: Api):
    ann = harness.connect()
    ann.subscribe(1, "Game")
    requests = [
        {"method": "POST", "path": "/api/classes/Game", "body": {"score": 1}},
        {"method": "PUT", "path": "/api/classes/Game/nobodyhere", "body": {"score": 2}},
    ]
    games.post("/batch", {"requests": requests, "transaction": True})
    last = games.make("Game", score=3)
    assert ann.next_events(1) == [("create", 1, last)]


def test_watch_sends_only_updates_of_those_fields(harness: EngineHarness, games: Api):
    ann = harness.connect()
    ann.subscribe(1, "Game", HIGH, watch=["name", "info.level"])
    game = games.make("Game", score=6, name="a", info={"level": 1, "lives": 3})
    for fields in (
        {"score": 7},
        {"name": "b"},
        {"name": "b"},
        {"info": {"level": 1, "lives": 2}},
        {"info": {"level": 2, "lives": 2}},
        {"score": 1},
        {"name": "c"},
        {"score": 8},
    ):
        put(games, game, **fields)
    games.delete(f"/classes/Game/{game}")
    events = [ann.next() for _ in range(6)]
    assert [event["op"] for event in events] == [
        *("create", "update", "update", "leave", "enter", "delete")
    ]
    assert [event["object"]["name"] for event in events[1:3]] == ["b", "b"]
    assert events[2]["object"]["info"]["level"] == 2


def test_watch_sends_new_objects_that_have_one_of_those_fields(harness: EngineHarness, games: Api):
    ann = harness.connect()
    ann.subscribe(1, "Game", watch=["name"])
    game = games.make("Game", score=1)
    put(games, game, score=2)
    put(games, game, name="a")
    named = games.make("Game", name="b")
    assert ann.next_events(2) == [("update", 1, game), ("create", 1, named)]


def test_a_change_is_sent_to_every_matching_subscription(harness: EngineHarness, games: Api):
    ann = harness.connect()
    for number, where in enumerate(
        [
            {"name": "a"},
            {"name": {"$in": ["a", "b"]}},
            {"tags": "x"},
            {"$or": [{"name": "q"}, {"score": 3}]},
            {"info.a": 1},
            {"name": {"$regex": "^a"}},
            {"place": {"$exists": False}},
            {"name": None},
            {"tags": {"$all": ["x", "z"]}},
        ]
    ):
        ann.subscribe(number + 1, "Game", where)
    games.make("Game", name="a", tags=["x", "y"], score=3, info={"a": 1})
    last = games.make("Game")
    observed = []
    while not observed or observed[-1] != ("create", 8, last):
        observed += ann.next_events(1)
    assert sorted(request for _, request, item in observed if item != last) == [1, 2, 3, 4, 5, 6, 7]


def test_large_objects_are_sent_completely(harness: EngineHarness, games: Api):
    ann = harness.connect()
    ann.subscribe(1, "Game")
    text = "long " * 100_000
    games.make("Game", name=text)
    assert ann.next("create")["object"]["name"] == text


def test_every_process_sends_to_its_own_clients(harnesses, games: Api):
    callers = [harnesses().connect() for _ in range(2)]
    for caller in callers:
        caller.subscribe(1, "Game", HIGH)
    game = games.make("Game", score=6)
    put(games, game, score=8)
    for caller in callers:
        assert caller.next_events(2) == [("create", 1, game), ("update", 1, game)]


def test_no_event_or_result_of_a_user_has_authdata(harness: EngineHarness, games: Api, person):
    ann = person("ann")
    linked = {"mine": {"id": "1", "access_token": "secret"}}
    users = User.objects.filter(object_id=ann.user_id)
    ann.aside.do(lambda: users.update(auth_data=linked))
    assert games.get(f"/users/{ann.user_id}").json["authData"] == linked
    callers = [harness.connect(ann.token), harness.connect(**MASTER_KEYS)]
    for caller in callers:
        caller.subscribe(1, "_User", {"objectId": ann.user_id})
        caller.subscribe(2, "_User", {"objectId": ann.user_id}, keys=["authData", "nick"])
    games.put(f"/users/{ann.user_id}", {"nick": "a"})
    for caller in callers:
        for event in (caller.next("update"), caller.next("update")):
            assert event["object"]["nick"] == "a"
            assert "secret" not in json.dumps(event)
        caller.send({"op": "query", "requestId": 1})
        [user] = caller.next("result", 1)["results"]
        assert (user["nick"], "authData" in user) == ("a", False)
