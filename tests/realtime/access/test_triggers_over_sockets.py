"""Triggers of live queries as clients meet them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from functions import (
    ConnectRequest,
    FindRequest,
    LiveEventRequest,
    ScriptFailed,
    SubscribeRequest,
    after_event,
    before_connect,
    before_find,
    before_subscribe,
)
from tests.objects.access.tables import PUBLIC
from tests.people import sign_up
from tests.subscribers import KEYS, Realtime, realtime_process

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def realtime(db: None) -> Iterator[Realtime]:
    with realtime_process() as process:
        yield process


def test_a_rejected_connect_gets_the_reason_and_is_closed(realtime):
    @before_connect()
    def members_only(request: ConnectRequest) -> None:
        if request.user_id is None:
            raise ScriptFailed("Members only.", code=4711)

    refused = realtime.connect(**KEYS)
    event = refused.next()
    assert (event["op"], event["code"], event["error"]) == ("error", 4711, "Members only.")
    assert event["reconnect"] is False
    assert refused.frame()["type"] == "websocket.close"
    assert realtime.subscriber(sign_up("ann"))


def test_a_trigger_narrows_replaces_and_rejects_a_subscription(realtime, master):
    master.make("Post", name="first", draft=False, text="t")
    counts: list[Any] = []

    @before_subscribe("Post")
    def narrow(request: SubscribeRequest) -> None:
        counts.append((request.clients, request.subscriptions))
        if request.options.raw_where == {"all": True}:
            raise ScriptFailed("Not all.", code=4712)
        request.query.where(draft=False).keys("name").watch("name")

    subscriber = realtime.subscriber()
    answer = subscriber.ask(1, "Post", {"all": True})
    assert (answer["op"], answer["code"], answer["error"], answer["requestId"]) == (
        "error",
        4712,
        "Not all.",
        1,
    )
    subscriber.subscribe(1, "Post")
    subscriber.subscribe(1, "Post", op="update")
    assert counts == [(1, 0), (1, 0), (1, 1)]
    master.make("Post", name="hidden", draft=True)
    post = master.make("Post", name="shown", draft=False, text="t")
    master.put(f"/classes/Post/{post}", {"text": "not watched"})
    master.put(f"/classes/Post/{post}", {"name": "renamed"})
    created, updated = subscriber.next(), subscriber.next()
    assert (created["op"], created["object"]["name"]) == ("create", "shown")
    assert (updated["op"], updated["object"]["name"]) == ("update", "renamed")
    assert "text" not in created["object"].keys() | updated["object"].keys()


def test_triggers_change_and_withhold_events_in_order(realtime, master):
    master.make("Post", name="first", number=0)

    @after_event("Post")
    def change(request: LiveEventRequest) -> None:
        if request.object["number"] % 3 == 0:
            request.send_event = False
        if request.object["number"] == 4:
            raise ScriptFailed("No four.", code=4713)
        request.object["event"] = request.event

    item, other = realtime.subscriber(), realtime.subscriber()
    for subscriber in (item, other):
        subscriber.subscribe(1, "Post", keys=["number", "event"])
    for number in range(9):
        master.make("Post", name="n", number=number)
    for subscriber in (item, other):
        events = [subscriber.next() for _ in range(6)]
        assert [message["op"] for message in events] == [*["create"] * 2, "error", *["create"] * 3]
        assert (events[2]["code"], events[2]["error"], events[2]["requestId"]) == (
            4713,
            "No four.",
            1,
        )
        objects = [message["object"] for message in events if message["op"] == "create"]
        assert [obj["number"] for obj in objects] == [1, 2, 5, 7, 8]
        assert {obj["event"] for obj in objects} == {"create"}
        assert all("name" not in obj for obj in objects)


def test_a_slow_trigger_delays_only_its_class(realtime, master):
    master.make("Slow", name="first")
    master.make("Fast", name="first")
    may_continue = threading.Event()

    @after_event("Slow")
    def wait(request: LiveEventRequest) -> None:
        assert may_continue.wait(20)

    subscriber = realtime.subscriber()
    subscriber.subscribe(1, "Slow")
    subscriber.subscribe(2, "Fast")
    master.make("Slow", name="slow")
    master.make("Fast", name="fast")
    assert subscriber.next()["requestId"] == 2
    may_continue.set()
    assert subscriber.next()["requestId"] == 1


def test_a_before_find_trigger_runs_again_when_permissions_change(realtime, master):
    master.make("Post", name="first", draft=False)
    hides: list[bool] = []

    @before_find("Post")
    def published(request: FindRequest) -> None:
        if hides:
            assert request.address
            request.query.where(draft=False)

    subscriber = realtime.subscriber()
    subscriber.subscribe(1, "Post")
    master.make("Post", name="seen", draft=True)
    assert subscriber.next()["object"]["name"] == "seen"
    hides.append(True)
    master.put("/schemas/Post", {"classLevelPermissions": PUBLIC})
    master.make("Post", name="unseen", draft=True)
    master.make("Post", name="published", draft=False)
    assert subscriber.next()["object"]["name"] == "published"


def test_fetch_uses_the_narrowed_query_of_the_subscription(realtime, master):
    """``query`` returns a search; a trigger may query fields that the client may not."""
    master.make("Post", name="open", secret=1)
    master.make("Post", name="closed", secret=2)
    permissions = {**PUBLIC, "protectedFields": {"*": ["secret"]}}
    master.put("/schemas/Post", {"classLevelPermissions": permissions})

    @before_subscribe("Post")
    def narrow(request: SubscribeRequest) -> None:
        request.query.where(secret=1)

    subscriber = realtime.subscriber()
    subscriber.subscribe(1, "Post")
    subscriber.say(op="query", requestId=1)
    (result,) = subscriber.next()["results"]
    assert (result["name"], "secret" in result) == ("open", False)
    master.make("Post", name="told", secret=1)
    assert subscriber.next()["object"]["name"] == "told"


def test_an_object_hidden_from_the_trigger_is_sent_as_its_id_only(realtime, master):
    """A subscriber who may not read an object any more gets its id only; its fields are for the
    trigger to show."""
    post = master.make("Post", name="first", text="for editors only")

    @after_event("Post")
    def without_text(request: LiveEventRequest) -> None:
        for image in (request.object, request.original or {}):
            image.pop("text", None)

    subscriber = realtime.subscriber()
    subscriber.subscribe(1, "Post")
    master.put(f"/classes/Post/{post}", {"name": "second"})
    assert "text" not in subscriber.next()["original"]
    master.put(f"/classes/Post/{post}", {"ACL": {}})
    event = subscriber.next()
    assert (event["op"], event["object"]) == ("leave", {"className": "Post", "objectId": post})
    assert "original" not in event


def test_slow_triggers_do_not_delay_changes_of_rights(realtime, master):
    master.make("Slow", name="first")
    master.make("Post", name="first")
    may_continue, started = threading.Event(), threading.Semaphore(0)

    @before_subscribe("Slow")
    def wait(request: SubscribeRequest) -> None:
        started.release()
        assert may_continue.wait(20)

    subscriber = realtime.subscriber()
    subscriber.subscribe(1, "Post")
    slow = [realtime.subscriber(address=f"192.0.2.{number}") for number in range(6)]
    for other in slow:
        other.say(op="subscribe", requestId=1, query={"className": "Slow", "where": {}})
    for _ in range(4):
        assert started.acquire(timeout=10)
    master.put("/schemas/Post", {"classLevelPermissions": PUBLIC})
    master.make("Post", name="told")
    assert subscriber.next()["object"]["name"] == "told"
    may_continue.set()
    assert all(other.next()["op"] == "subscribed" for other in slow)
