"""Notifications add up to what a search finds."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.db import connection

from tests.realtime.livequery.desk import CLIENT_KEYS, MASTER_KEYS, Caller, Desk
from tests.rest import CLIENT, Api
from tests.threads import at_once

pytestmark = pytest.mark.django_db

WHERES: list[dict[str, Any]] = [
    {},
    {"name": "a"},
    {"name": {"$in": ["a", "b"]}},
    {"name": {"$ne": "a"}},
    {"score": {"$gte": 3, "$lt": 7}},
    {"score": {"$gt": 5}},
    {"tags": "x"},
    {"tags": {"$all": ["x", "y"]}},
    {"$or": [{"name": "b"}, {"score": 2}]},
    {"$and": [{"score": {"$lt": 8}}, {"tags": {"$exists": True}}]},
    {"info.level": {"$in": [1, 2]}},
    {"name": None},
]


class Folded:
    """The objects that a subscription finds, as its events say."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}

    def take(self, event: dict[str, Any]) -> None:
        op, obj = event["op"], event["object"]
        object_id = obj["objectId"]
        if op in ("create", "enter"):
            assert object_id not in self.objects, event
            self.objects[object_id] = obj
            return
        before = self.objects.pop(object_id)
        if op != "delete":
            assert event["original"] == before, "each event begins where the one before ended"
        if op == "update":
            self.objects[object_id] = obj


def write(api: Api, chance: random.Random, acls: list[Any], count: int) -> None:
    """Make, change and delete objects at random, alone and in batches."""
    made: list[str] = []

    def fields() -> dict[str, Any]:
        drawn = {
            "name": chance.choice(["a", "b", "c", None]),
            "score": chance.randrange(10),
            "tags": chance.sample(["x", "y", "z"], chance.randrange(3)),
            "info": {"level": chance.randrange(4)},
            "ACL": chance.choice(acls),
        }
        return {name: drawn[name] for name in chance.sample(sorted(drawn), chance.randrange(1, 6))}

    for _ in range(count):
        action = chance.random()
        if action < 0.35 or not made:
            made.append(api.make("Game", **fields()))
        elif action < 0.8:
            api.put(f"/classes/Game/{chance.choice(made)}", fields())
        elif action < 0.9:
            api.delete(f"/classes/Game/{made.pop(chance.randrange(len(made)))}")
        else:
            path = f"/api/classes/Game/{chance.choice(made)}"
            parts = [{"method": "PUT", "path": path, "body": fields()} for _ in range(3)]
            api.post("/batch", {"requests": parts, "transaction": chance.random() < 0.5})


def test_events_add_up_to_what_a_search_finds_under_concurrent_writers(
    desk: Desk, games: Any, person
):
    seed = random.randrange(10**6)
    ann, bob = person("ann"), person("bob")
    people: list[tuple[Caller, Api]] = [
        (desk.connect(**MASTER_KEYS), Api(games.headers)),
        (desk.connect(**CLIENT_KEYS), Api({**CLIENT})),
        *((desk.connect(item.token), Api(item.headers)) for item in (ann, bob)),
    ]
    games.make("Last")
    for caller, _ in people:
        for number, where in enumerate(WHERES):
            caller.subscribe(number, "Game", where)
        caller.subscribe(len(WHERES), "Last")
    acls = [None, {"*": {"read": True}}, {ann.user_id: {"read": True}}, {}]
    acls.append({ann.user_id: {"read": True}, bob.user_id: {"read": True}})
    writers = [random.Random(f"{seed} {number}") for number in range(3)]
    master = Api(games.headers)
    at_once([lambda chance=chance: write(master, chance, acls, 40) for chance in writers])
    games.make("Last")
    for caller, reader in people:
        events = told_until_last(caller)
        for number, where in enumerate(WHERES):
            expected = games_found(games, reader, where)
            assert events[number].objects == expected, (seed, where)
    games.delete("/purge/Last")
    games.delete("/schemas/Last")


def told_until_last(caller: Caller) -> list[Folded]:
    """What each subscription has sent when the object of the other class was made."""
    results = [Folded() for _ in WHERES]
    while (event := caller.next())["object"]["className"] == "Game":
        results[event["requestId"]].take(event)
    return results


def games_found(committing: Any, reader: Api, where: Any) -> dict[str, dict[str, Any]]:
    """What a search finds, by id, in the form of live queries."""
    output = committing.aside.do(lambda: reader.results("Game", where=where, limit=1000))
    return {item["objectId"]: {"className": "Game", **item} for item in output}


def test_a_lost_connection_to_postgresql_loses_nothing(desk: Desk, games: Any):
    ann = desk.connect()
    ann.subscribe(1, "Game")
    first = games.make("Game")
    assert ann.told(1) == [("create", 1, first)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [mine] = cursor.fetchone()

    def hang_up() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid NOT IN (pg_backend_pid(), %s)",
                [mine],
            )

    games.aside.do(hang_up)
    made = [games.make("Game") for _ in range(3)]
    assert ann.told(3) == [("create", 1, item) for item in made]
    assert ann.socket.closed_with is None
    ann.subscribe(2, "Game", {"score": 1})
