"""Live queries by real sockets: subscribers get what the tables say, and nothing else.

One connection a caller and many objects: each gets all of them before the last one, which
everybody sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.objects.access.tables import (
    GROUPS,
    LISTS,
    LOGIN,
    MASTERS,
    NAMES,
    OWNER_ID,
    PUBLIC,
    RULES,
    SECRET,
    YES,
    may,
)
from tests.objects.access.world import pointer
from tests.people import User
from tests.rest import Api
from tests.subscribers import MASTER_KEYS, READER_KEYS, Realtime, Subscriber, realtime_process

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db(transaction=True),
]

LAST = "last"
Told = dict[str, list[dict[str, Any]]]


@pytest.fixture
def realtime(db: None) -> Iterator[Realtime]:
    with realtime_process() as process:
        yield process


@pytest.fixture
def callers(realtime: Realtime, people: dict[str, Api]) -> dict[str, Subscriber]:
    """A connection of each caller of the tables, which sees the objects of ``Last``."""
    people["master"].make("Last")
    keys = {"master": MASTER_KEYS, "reader": READER_KEYS}
    connected = {}
    for name in NAMES:
        user = people[name] if isinstance(people[name], User) else None
        connected[name] = realtime.subscriber(user, **keys.get(name, {}))
        connected[name].subscribe(0, "Last")
    return connected


def notifications_of(callers: dict[str, Subscriber], master: Api) -> Told:
    """What each received since, by kind and name of the object."""
    last = master.make("Last", name=LAST)
    results = {name: item.until(LAST) for name, item in callers.items()}
    master.delete(f"/classes/Last/{last}")
    for item in callers.values():
        assert item.next()["op"] == "delete"
    return results


def settled(callers: dict[str, Subscriber], master: Api) -> None:
    """What was written is read: a new subscriber doesn't get it."""
    notifications_of(callers, master)


def names(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(message["op"], message["object"].get("name")) for message in messages]


def permit(master: Api, class_name: str, **permissions: Any) -> None:
    body = {"classLevelPermissions": permissions}
    assert master.put(f"/schemas/{class_name}", body).status == 200


def test_access_lists(callers, people):
    master = people["master"]
    master.make("Doc", name="before", number=0)
    settled(callers, master)
    for item in callers.values():
        item.subscribe(1, "Doc")
    made = {
        name: master.make("Doc", name=name, **({} if acl is None else {"ACL": acl}))
        for name, (acl, _, _) in LISTS.items()
    }

    def check(op: str) -> None:
        for caller, messages in notifications_of(callers, master).items():
            expected = [(op, name) for name, (_, readers, _) in LISTS.items() if caller in readers]
            assert names(messages) == expected, caller

    check("create")
    for object_id in made.values():
        master.put(f"/classes/Doc/{object_id}", {"number": 1})
    check("update")
    for object_id in made.values():
        master.delete(f"/classes/Doc/{object_id}")
    check("delete")


def test_an_object_that_comes_into_sight_and_leaves_it(callers, people):
    """Who may read one image is never sent the other."""
    master = people["master"]
    doc = master.make("Doc", name="doc", ACL={})
    settled(callers, master)
    for item in callers.values():
        item.subscribe(1, "Doc")
    for acl, secret in (({"role:Team": {"read": True}}, 1), ({OWNER_ID: {"read": True}}, 2)):
        master.put(f"/classes/Doc/{doc}", {"ACL": acl, "secret": secret})
    observed = notifications_of(callers, master)
    for caller in MASTERS:
        assert [message["op"] for message in observed[caller]] == ["update", "update"]
    entered, left = observed["member"]
    assert (entered["op"], entered["object"]["secret"]) == ("enter", 1)
    assert "original" not in entered
    assert (left["op"], left["object"]) == ("leave", {"className": "Doc", "objectId": doc})
    assert left["original"]["secret"] == 1
    (entered,) = observed["owner"]
    assert (entered["op"], entered["object"]["secret"]) == ("enter", 2)
    assert "original" not in entered
    assert (observed["stranger"], observed["client"]) == ([], [])


def test_permissions_of_classes(callers, people):
    master = people["master"]
    fields = {"owner": pointer("_User", OWNER_ID), "team": [pointer("_User", OWNER_ID)]}
    by_class = {f"Doc{number}": rule for number, rule in enumerate(RULES)}
    for class_name, rule in by_class.items():
        master.make(class_name, name="before", **fields)
        permit(master, class_name, **PUBLIC | {"find": RULES[rule][0]})
    settled(callers, master)
    expected: dict[str, list[str]] = {caller: [] for caller in callers}
    for caller, item in callers.items():
        for number, (class_name, rule) in enumerate(by_class.items(), 1):
            target = RULES[rule][1]
            outcome = may(caller, target, "own")
            answer = item.ask(number, class_name)
            if outcome in (YES, "not found"):
                assert answer["op"] == "subscribed", (caller, rule)
            else:
                assert answer["op"] == "error", (caller, rule)
                assert answer["code"] == (101 if outcome == LOGIN else 119), (caller, rule)
            expected[caller] += [
                f"{which} of {rule}"
                for which in ("own", "other")
                if may(caller, target, which) == YES
            ]
    for class_name, rule in by_class.items():
        master.make(class_name, name=f"own of {rule}", **fields)
        master.make(class_name, name=f"other of {rule}")
    for caller, messages in notifications_of(callers, master).items():
        assert [name for _, name in names(messages)] == expected[caller], caller


def test_protected_fields(callers, people):
    master = people["master"]
    named = {"owner": pointer("_User", OWNER_ID), "team": [pointer("_User", OWNER_ID)]}
    secret = {"secret": {"word": "s"}}
    docs = []
    for number, (group, (protected, _, _)) in enumerate(GROUPS.items()):
        class_name = f"Kept{number}"
        for which, fields in (("own", named), ("other", {})):
            name = f"{which} {group}"
            docs.append((class_name, master.make(class_name, name=name, **secret, **fields)))
        permit(master, class_name, **PUBLIC, protectedFields=protected)
    settled(callers, master)
    for number in range(len(GROUPS)):
        for item in callers.values():
            item.subscribe(number + 1, f"Kept{number}")
    for class_name, doc in docs:
        master.put(f"/classes/{class_name}/{doc}", {"number": 1})
    for caller, messages in notifications_of(callers, master).items():
        assert len(messages) == len(docs)
        for message in messages:
            which, _, group = message["object"]["name"].partition(" ")
            _, own, other = GROUPS[group]
            shown = caller in (own if which == "own" else other)
            for image in (message["object"], message["original"]):
                assert ("secret" in image) == shown, (caller, group, which)


def test_a_question_about_a_protected_field_is_refused(callers, people):
    master = people["master"]
    master.make("Doc", secret={"word": "s"})
    permit(master, "Doc", **PUBLIC, protectedFields={"*": SECRET})
    for caller, item in callers.items():
        for more in (
            {"where": {"secret.word": "s"}},
            {"where": {"$or": [{"name": "x"}, {"$nor": [{"secret": {"$exists": True}}]}]}},
            {"watch": ["secret"]},
            {"watch": ["secret.word"]},
        ):
            answer = item.ask(1, "Doc", **more)
            if caller in MASTERS:
                assert answer["op"] == "subscribed", (caller, more)
            else:
                assert (answer["op"], answer["code"]) == ("error", 119), (caller, more)


def test_people(callers, people):
    """Accounts, sessions and installations are sent to those who can read them over REST."""
    master, owner = people["master"], people["owner"]
    settled(callers, master)
    for caller, item in callers.items():
        item.subscribe(1, "_User")
        answer = item.ask(2, "_Session")
        assert (answer.get("code") == 209) == (caller == "client"), caller
        answer = item.ask(3, "_Installation")
        assert (answer.get("code") == 119) == (caller not in MASTERS), caller
    assert master.put(f"/users/{OWNER_ID}", {"email": "o@example.org"}).status == 200
    assert owner.post("/sessions").status == 201
    for caller, messages in notifications_of(callers, master).items():
        if caller not in MASTERS | {"owner"}:
            assert messages == [], caller
            continue
        account, session = messages
        assert (account["op"], account["object"]["email"]) == ("update", "o@example.org")
        assert (session["op"], session["object"]["user"]["objectId"]) == ("create", OWNER_ID)
        assert "r:" not in str(messages)


def test_addresses_of_accounts_that_everyone_may_read(callers, people):
    master = people["master"]
    open_to_all = {"*": {"read": True}, OWNER_ID: {"read": True, "write": True}}
    body = {"ACL": open_to_all, "email": "o@example.org", "name": "owner"}
    assert master.put(f"/users/{OWNER_ID}", body).status == 200
    settled(callers, master)
    for caller, item in callers.items():
        item.subscribe(1, "_User")
        for more in (
            {"where": {"email": "o@example.org"}},
            {"where": {"$or": [{"name": "x"}, {"email": {"$exists": True}}]}},
            {"watch": ["email"]},
        ):
            answer = item.ask(2, "_User", **more)
            if caller in MASTERS:
                assert answer["op"] == "subscribed", (caller, more)
            else:
                assert (answer["op"], answer["code"]) == ("error", 119), (caller, more)
        if caller in MASTERS:
            item.say(op="unsubscribe", requestId=2)
            assert item.next()["op"] == "unsubscribed"
    assert master.put(f"/users/{OWNER_ID}", {"email": "new@example.org"}).status == 200
    for caller, messages in notifications_of(callers, master).items():
        (message,) = messages
        for image, address in (("object", "new@example.org"), ("original", "o@example.org")):
            shown = address if caller in MASTERS | {"owner"} else None
            assert message[image].get("email") == shown, (caller, image)


def test_the_services_own_classes_are_closed(callers):
    for class_name in ("_JobStatus", "_Hooks", "_GlobalConfig", "_Idempotency"):
        for caller, item in callers.items():
            answer = item.ask(1, class_name)
            assert (answer["op"] == "subscribed") == (caller in MASTERS), (caller, answer)
