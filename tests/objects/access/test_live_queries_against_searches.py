"""A live query tells exactly what searches by the same caller, before and after, would show.

Random objects, access lists, permissions, roles and queries; expected results come over REST.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.objects.access.tables import (
    GROUPS,
    LISTS,
    MASTERS,
    NAMES,
    OWNER_ID,
    PUBLIC,
    RULES,
    STRANGER_ID,
)
from tests.objects.access.world import pointer
from tests.people import User
from tests.rest import Api
from tests.subscribers import MASTER_KEYS, READER_KEYS, Realtime, Subscriber, realtime_process

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db(transaction=True),
]

STEPS = 20
QUESTIONS: dict[int, dict[str, Any]] = {
    1: {},
    2: {"number": 1},
    3: {"$or": [{"number": {"$gt": 1}}, {"owner": pointer("_User", OWNER_ID)}]},
}
Seen = dict[str, dict[str, Any]]


@pytest.fixture
def realtime(db: None) -> Iterator[Realtime]:
    with realtime_process() as process:
        yield process


class Caller:
    """A caller over REST and by a socket, with what searches have shown last."""

    def __init__(self, api: Api, socket: Subscriber) -> None:
        self.api = api
        self.socket = socket
        self.may_search = api.get("/classes/Doc").status == 200
        self.seen: dict[int, Seen] = {number: {} for number in QUESTIONS}
        self.expected: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        if self.may_search:
            self.seen = self.search()

    def search(self) -> dict[int, Seen]:
        return {
            number: {
                obj["objectId"]: {"className": "Doc", **obj}
                for obj in self.api.results("Doc", where=where)
            }
            for number, where in QUESTIONS.items()
        }

    def look(self, object_id: str, kind: str) -> None:
        """Search, and expect what that says of the object which was just changed."""
        if not self.may_search:
            return
        before, after = self.seen, self.search()
        self.seen = after
        for number in QUESTIONS:
            was, now = before[number].get(object_id), after[number].get(object_id)
            message: dict[str, Any] = {"requestId": number}
            if now is not None:
                op = "create" if kind == "create" else "enter" if was is None else "update"
                message |= {"op": op, "object": now}
                if op != "create" and object_id in before[1]:
                    message["original"] = before[1][object_id]
            elif was is not None:
                stub = {"className": "Doc", "objectId": object_id}
                message |= {"op": "delete", "object": was}
                if kind != "delete":
                    left = after[1].get(object_id, stub)
                    message |= {"op": "leave", "object": left, "original": was}
            else:
                continue
            self.expected.append(message)


def random_fields(chance: random.Random) -> dict[str, Any]:
    owner = chance.choice([OWNER_ID, STRANGER_ID, None])
    named = None if owner is None else pointer("_User", owner)
    acl = LISTS[chance.choice(sorted(LISTS))][0]
    return {
        "number": chance.randrange(4),
        "owner": named,
        "team": [] if named is None else [named],
        "secret": chance.randrange(1000),
        "ACL": acl,
    }


def hear_of_everything(master: Api, callers: Iterable[Caller], name: str) -> None:
    """Wait until all subscribers have received what was changed until now."""
    master.make("Last", name=name)
    for caller in callers:
        caller.told += caller.socket.until(name)


MORE = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *MORE])
def test_what_is_reported_is_what_searches_show(people, realtime, seed):
    chance = random.Random(seed)
    master = people["master"]
    docs = [master.make("Doc", **random_fields(chance)) for _ in range(3)]
    master.make("Last", name="first")
    rule = RULES[chance.choice(sorted(RULES.keys() - {"nobody"}))][0]
    protected = GROUPS[chance.choice(sorted(GROUPS))][0]
    permissions = {**PUBLIC, "find": rule, "protectedFields": protected}
    master.put("/schemas/Doc", {"classLevelPermissions": permissions})
    keys = {"master": MASTER_KEYS, "reader": READER_KEYS}
    callers = {}
    for name in NAMES:
        user = people[name] if isinstance(people[name], User) else None
        socket = realtime.subscriber(user, **keys.get(name, {}))
        caller = callers[name] = Caller(people[name], socket)
        socket.subscribe(0, "Last")
        for number, where in QUESTIONS.items():
            answer = socket.ask(number, "Doc", where)
            assert (answer["op"] == "subscribed") == caller.may_search, (name, answer)
    (inner,) = master.results("_Role", where={"name": "Inner"})
    is_member = True
    for step in range(STEPS):
        kind = chance.choice(["create", "update", "update", "update", "delete", "protect", "role"])
        if kind in ("protect", "role"):
            # A notification is checked against the rights at the moment it is sent.
            hear_of_everything(master, callers.values(), f"step {step}")
        if kind == "protect":
            permissions["protectedFields"] = GROUPS[chance.choice(sorted(GROUPS))][0]
            master.put("/schemas/Doc", {"classLevelPermissions": permissions})
        elif kind == "role" and "role:Team" not in rule:
            is_member = not is_member
            operator = "AddRelation" if is_member else "RemoveRelation"
            change = {"__op": operator, "objects": [people["member"].pointer]}
            master.put(f"/roles/{inner['objectId']}", {"users": change})
        if kind in ("protect", "role"):
            # The former image is shown under the rights of the moment, too.
            for caller in callers.values():
                caller.seen = caller.search() if caller.may_search else caller.seen
            continue
        if not docs:
            kind = "create"
        if kind == "create":
            doc = master.make("Doc", **random_fields(chance))
            docs.append(doc)
        else:
            doc = chance.choice(docs)
        if kind == "update":
            fields = random_fields(chance)
            some = chance.sample(sorted(fields), chance.randint(1, len(fields)))
            master.put(f"/classes/Doc/{doc}", {name: fields[name] for name in some})
        elif kind == "delete":
            master.delete(f"/classes/Doc/{doc}")
            docs.remove(doc)
        for caller in callers.values():
            caller.look(doc, kind)
    hear_of_everything(master, callers.values(), "last")
    event = 0
    for name, caller in callers.items():
        messages = caller.told
        for message in messages:
            del message["clientId"]
        messages.sort(key=lambda item: item["requestId"])
        caller.expected.sort(key=lambda item: item["requestId"])
        for message, expected in zip(messages, caller.expected, strict=False):
            assert message == expected, (name, message, expected)
        assert len(messages) == len(caller.expected), name
        event += len(messages)
        assert caller.may_search or name not in MASTERS
    assert event > STEPS
