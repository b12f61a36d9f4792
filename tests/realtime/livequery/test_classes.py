"""Subscriptions while classes come, change and go, and to classes that the service writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from realtime.sockets.connections import TRY_AGAIN
from tests.realtime.livequery.desk import MASTER_KEYS, Desk
from tests.rest import Api

pytestmark = pytest.mark.django_db

LOGIN = {"requiresAuthentication": True}


def permit(api: Api, **permissions: Any) -> None:
    body = {"classLevelPermissions": permissions}
    assert api.put("/schemas/Game", body).status == 200


def test_a_class_may_be_waited_for_before_it_is_there(desk: Desk, games: Api, settings):
    ann, bob = desk.connect(**MASTER_KEYS), desk.connect()
    ann.subscribe(1, "Later", {"score": 1})
    # As over REST: clients get no hint of classes that they can't make.
    assert bob.refused(1, "Later") == 119
    made = games.make("Later", score=1)
    try:
        assert ann.told(1) == [("create", 1, made)]
        bob.subscribe(1, "Later")
    finally:
        games.delete("/purge/Later")
        assert ann.told(1) == [("delete", 1, made)]
        assert games.delete("/schemas/Later").status == 200
    # The class is another one now, of the same name.
    made = games.make("Later", score=1)
    try:
        assert ann.told(1) == [("create", 1, made)]
    finally:
        games.delete("/purge/Later")
        games.delete("/schemas/Later")


def test_subscriptions_go_on_when_fields_are_added(desk: Desk, games: Api):
    ann = desk.connect()
    ann.subscribe(1, "Game", {"level": 3})
    games.make("Game", score=1)
    made = games.make("Game", level=3, colour="red")
    event = ann.next("create", 1)
    assert (event["object"]["objectId"], event["object"]["colour"]) == (made, "red")
    games.make("Game", other=[1])
    last = games.make("Game", level=3)
    assert ann.told(1) == [("create", 1, last)]


def test_a_subscription_ends_when_it_would_be_refused(desk: Desk, games: Api, person):
    ann, bob = desk.connect(person("ann").token), desk.connect()
    for caller in (ann, bob):
        caller.subscribe(1, "Game")
        caller.subscribe(2, "Game", {"score": 1})
    permit(games, find=LOGIN, get={"*": True})
    made = games.make("Game", score=1)
    errors = [bob.next("error") for _ in range(2)]
    assert {(error["requestId"], error["code"], error["reconnect"]) for error in errors} == {
        (1, 101, False),
        (2, 101, False),
    }
    assert sorted(ann.told(2)) == [("create", 1, made), ("create", 2, made)]
    assert bob.refused(3, "Game") == 101
    permit(games, find={"*": True}, get={"*": True})
    bob.subscribe(1, "Game")
    made = games.make("Game")
    assert bob.told(1) == [("create", 1, made)]


def test_fields_that_become_protected_are_shown_no_more(desk: Desk, games: Api):
    ann = desk.connect()
    ann.subscribe(1, "Game")
    ann.subscribe(2, "Game", {"name": "a"})
    game = games.make("Game", name="a", score=1)
    assert [ann.next()["object"]["name"] for _ in range(2)] == ["a", "a"]
    permit(games, find={"*": True}, protectedFields={"*": ["name"]})
    assert games.put(f"/classes/Game/{game}", {"score": 2}).status == 200
    by_request = {item["requestId"]: item for item in (ann.next() for _ in range(2))}
    assert (by_request[2]["op"], by_request[2]["code"]) == ("error", 119)
    assert by_request[1]["op"] == "update"
    assert "name" not in by_request[1]["object"]
    assert "name" not in by_request[1]["original"]


def test_who_may_have_missed_something_is_sent_away_to_connect_again(desk: Desk, games: Api):
    from objects.changes import Batch
    from realtime.livequery.identities import SessionChanges

    callers = [desk.connect(), desk.connect()]
    for caller in callers:
        caller.subscribe(1, "Game")
    callers.append(desk.connect(**MASTER_KEYS))
    for number, name in enumerate(("Game", "First", "Second")):
        callers[-1].subscribe(number, name)
    other = desk.connect(**MASTER_KEYS)
    other.subscribe(1, "Other")
    gap = frozenset({"Game", "First", "Second", "Unknown"})
    desk.run(desk.engine.publish(Batch([], "0", gap=gap), SessionChanges()))
    assert [caller.socket.closed_with for caller in callers] == [TRY_AGAIN] * 3
    assert other.socket.closed_with is None
    assert desk.status["subscriptions"] == 1
    for caller in callers:
        caller.leave()
    again = desk.connect()
    again.subscribe(1, "Game")
    made = games.make("Game")
    assert again.told(1) == [("create", 1, made)]


def test_after_a_fault_clients_connect_again(desk: Desk, games: Api, person):
    ann = desk.connect(person("ann").token)
    ann.subscribe(1, "Game")
    desk.begin_again()
    again = desk.connect()
    assert ann.socket.closed_with == TRY_AGAIN
    assert desk.status["sessions"] == 0
    again.subscribe(1, "Game")
    made = games.make("Game")
    assert again.told(1) == [("create", 1, made)]
    # A client that is being disconnected gets no more answers.
    ann.say({"op": "subscribe", "requestId": 2, "query": {"className": "Game", "where": {}}})
    assert desk.status["subscriptions"] == 1


def test_people_roles_and_sessions_are_told_to_whom_they_concern(desk: Desk, games: Api, person):
    master = desk.connect(**MASTER_KEYS)
    for number, name in enumerate(("_User", "_Role", "_Session")):
        master.subscribe(number, name)
    ann = person("ann")
    events = [master.next("create") for _ in range(2)]
    assert {item["object"]["className"] for item in events} == {"_User", "_Session"}
    assert "sessionToken" not in str(events)
    assert "'password':" not in str(events)
    hers = desk.connect(ann.token)
    hers.subscribe(1, "_Session")
    hers.subscribe(2, "_User", {"objectId": ann.user_id})
    ann.put(f"/users/{ann.user_id}", {"nick": "an"})
    event = hers.next("update", 2)
    assert event["object"]["nick"] == "an"
    master.next("update", 0)
    person("bob")
    ann.post("/logout")
    # Her sessions' subscriptions end with the session, whose end isn't sent to her as an object.
    assert {hers.next("error")["code"], hers.next("error")["code"]} == {209}


# -- The chain's ----------------------------------------------------------------------------------


@pytest.fixture
def chained(aside, games: Api) -> Iterator[Any]:
    """Does things to the chain's classes, and removes what was stored."""
    from chain.models import ContractEvent, OutboxEntry, Transaction

    yield aside.do

    def clear() -> None:
        for model in (ContractEvent, OutboxEntry, Transaction):
            model.objects.all().delete()

    aside.do(clear)


def test_an_event_that_leaves_the_chain_is_told_and_told_again_when_it_comes_back(
    desk: Desk, chained
):
    from django.db import transaction

    from chain.indexing.storage import events
    from tests.chain.test_storing import NETWORK, row

    def store(seq: int) -> None:
        with transaction.atomic():
            events.store_events(NETWORK, [row(5), row(6), row(7)], after_seq=seq)

    def remove() -> None:
        with transaction.atomic():
            events.remove_events(NETWORK, 5, after_seq=3)

    ann = desk.connect()
    ann.subscribe(1, "ContractEvent", {"contractName": "Gem", "blockNumber": {"$gt": 5}})
    chained(lambda: store(0))
    came = [ann.next("create", 1)["object"] for _ in range(2)]
    assert [item["blockNumber"] for item in came] == [6, 7]
    assert came[0]["className"] == "ContractEvent"
    chained(remove)
    left = [ann.next("delete", 1)["object"] for _ in range(2)]
    assert {item["objectId"] for item in left} == {item["objectId"] for item in came}
    chained(lambda: store(6))
    back = [ann.next("create", 1)["object"] for _ in range(2)]
    assert {item["objectId"] for item in back} == {item["objectId"] for item in came}


def test_an_event_is_sent_as_final_as_it_is_at_that_moment(desk: Desk, chained):
    from django.db import transaction

    from chain.indexing.storage import events
    from chain.models import Cursor
    from tests.chain.test_storing import NETWORK, row

    def store(block: int) -> None:
        with transaction.atomic():
            events.store_events(NETWORK, [row(block), row(block + 1)], after_seq=block)

    def synced(**heights: int) -> None:
        Cursor.objects.update_or_create(network_id=NETWORK, defaults=heights)

    ann, bob = desk.connect(), desk.connect()
    ann.subscribe(1, "ContractEvent", {"contractName": "Gem"})
    bob.subscribe(2, "ContractEvent", {"finality": "final"})
    try:
        chained(lambda: synced(number=6, safe=6, finalized=5))
        chained(lambda: store(5))
        shown = [ann.next("create", 1)["object"] for _ in range(2)]
        assert [item["finality"] for item in shown] == ["final", "safe"]
        assert bob.next("create", 2)["object"]["blockNumber"] == 5
        chained(lambda: synced(number=8, safe=8, finalized=8))
        chained(lambda: store(7))
        # Nothing was sent when the event of block 6 became final.
        assert [bob.next("create", 2)["object"]["blockNumber"] for _ in range(2)] == [7, 8]
    finally:
        chained(lambda: Cursor.objects.filter(network_id=NETWORK).delete())


def test_a_transaction_is_told_when_it_is_mined(desk: Desk, chained, node):
    from tests.chain.monitored import follow, network, paid

    def begin() -> Any:
        network(node.chain_id, node.url)
        return follow(node.chain_id, paid(node))

    ann = desk.connect()
    ann.subscribe(1, "Transaction", {"status": "pending"})
    ann.subscribe(2, "Transaction", {"status": "confirmed"})
    item = chained(begin)
    assert ann.next("create", 1)["object"]["status"] == "pending"
    chained(item.check)
    mined = {event["requestId"]: event for event in (ann.next(), ann.next())}
    assert (mined[1]["op"], mined[2]["op"]) == ("leave", "enter")
    assert mined[2]["object"]["hash"] == item.wire["hash"]
    assert mined[2]["original"]["status"] == "pending"
