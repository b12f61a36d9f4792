"""Receivers, mail servers, push services and triggers that hang delay only their own tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis
from celery.contrib.testing.worker import start_worker
from django.conf import settings as conf

from backend.celery import app
from backend.kernel.process import heartbeats
from backend.tasks import lanes, overflow
from functions import TriggerRequest, after_save
from functions.webhooks import deliveries
from objects.push.adapters.base import SENT, Message, Outcome
from tests.functions.webhooks.receiver import Received, Receiver
from tests.functions.webhooks.test_outbox import declare, deliver_all, master, waiting
from tests.mail_server import MailServer
from tests.objects.push.pushing import install, push, status
from tests.objects.push.recorder import adapters
from tests.people import sign_up
from tests.polling import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("emptied")]

PATIENCE = 25  # seconds, less than any time limit of what hangs
MANY = 60


class PushService:
    """A push service that accepts every message once ``may_answer`` is set."""

    def __init__(self, may_answer: threading.Event) -> None:
        self.accepted = 0
        self._may_answer = may_answer

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        await asyncio.to_thread(self._may_answer.wait, 60)
        self.accepted += len(messages)
        return [SENT] * len(messages)

    async def close(self) -> None:
        return None


@dataclass
class World:
    """Everything that tasks call. Nothing of a kind answers before the event of its kind."""

    receiver: Receiver
    fcm: PushService
    mail: MailServer
    user_id: str
    events: dict[str, threading.Event]
    done: list[str] = field(default_factory=list)

    def wait(self, kind: str) -> None:
        self.events[kind].wait(60)
        self.done.append(kind)


KINDS = ("webhook", "push", "mail", "trigger")


@pytest.fixture
def world(receiver: Receiver, settings: Any) -> Iterator[World]:
    events = {kind: threading.Event() for kind in KINDS}
    fcm = PushService(events["push"])
    mail = MailServer(events["mail"])
    settings.SERVICE = {
        **settings.SERVICE,
        "WEBHOOK_TIMEOUT": 60.0,
        "PUSH_ADAPTERS": {"android": "fcm", "*": "log"},
    }
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_TIMEOUT = 60
    settings.EMAIL_HOST, settings.EMAIL_PORT = mail.server_address
    result = World(receiver, fcm, mail, sign_up("ann", email="ann@example.org").user_id, events)

    @after_save("Note", background=True)
    def after(request: TriggerRequest) -> None:
        result.wait("trigger")

    @after_save("OtherNote", background=True)
    def after_other(request: TriggerRequest) -> None:
        result.done.append("other trigger")

    def answer_webhook(item: Received) -> Any:
        result.wait("webhook")
        return {"success": None}

    declare("Game", "afterSave", receiver.on("/", answer_webhook))
    other = Receiver()
    declare("Other", "afterSave", other.on("/", lambda item: result.done.append("other webhook")))
    install(1, deviceType="android")
    install(1, deviceType="ios")
    with adapters(fcm=fcm):
        yield result
    for event in events.values():
        event.set()
    other.stop()
    mail.shutdown()
    mail.server_close()


def begin(kind: str, world: World) -> None:
    """Start one task of a kind."""
    if kind == "webhook":
        master.make("Game")
    elif kind == "push":
        push(where={"deviceType": "android"}, data={"alert": "Hello"})
    elif kind == "mail":
        app.tasks["objects.mail_link"].delay("reset", user_id=world.user_id)
    else:
        master.make("Note")


def is_done(kind: str, world: World) -> bool:
    server = {"mail": world.mail, "push": world.fcm}.get(kind)
    return kind in world.done if server is None else server.accepted > 0


def count(kind: str, world: World) -> int:
    return world.mail.accepted if kind == "mail" else world.done.count(kind)


@pytest.mark.parametrize("slow", KINDS)
def test_tasks_of_other_kinds_are_done_while_one_kind_hangs(slow: str, world: World) -> None:
    for kind in KINDS:
        if kind != slow:
            world.events[kind].set()
    for _ in range(MANY):
        begin(slow, world)
    with (
        start_worker(
            app,
            pool="threads",
            concurrency=lanes.THREADS,
            perform_ping_check=False,
            loglevel="warning",
        ),
        redis.Redis.from_url(conf.REDIS_URL) as client,
    ):
        for kind in KINDS:
            if kind != slow:
                begin(kind, world)
        master.make("Other")
        master.make("OtherNote")
        ios = push(where={"deviceType": "ios"}, data={"alert": "Hello"})
        client.delete(f"heartbeat:{heartbeats.BEAT}")
        app.tasks["backend.beat_is_alive"].delay()
        until(lambda: all(is_done(kind, world) for kind in KINDS if kind != slow), PATIENCE)
        until(lambda: {"other webhook", "other trigger"} <= {*world.done}, PATIENCE)
        until(lambda: status(ios)["status"] == "succeeded", PATIENCE)
        until(lambda: heartbeats.latest(client, heartbeats.BEAT) is not None, PATIENCE)
        assert not is_done(slow, world)
        world.events[slow].set()
        until(lambda: is_done(slow, world), PATIENCE)


@pytest.mark.parametrize("kind", ["mail", "trigger"])
def test_all_tasks_that_got_no_place_are_done_once(kind: str, world: World) -> None:
    for _ in range(MANY):
        begin(kind, world)
    with (
        start_worker(
            app,
            pool="threads",
            concurrency=lanes.THREADS,
            perform_ping_check=False,
            loglevel="warning",
        ),
        redis.Redis.from_url(conf.REDIS_URL) as client,
    ):
        lane = lanes.MAILS if kind == "mail" else lanes.TRIGGERS
        until(lambda: overflow.length(client) >= MANY - lane.share, PATIENCE)
        world.events[kind].set()
        until(lambda: count(kind, world) >= MANY, PATIENCE)
        until(lambda: overflow.length(client) == 0, PATIENCE)
    assert count(kind, world) == MANY


def test_the_sweep_starts_tasks_whose_worker_has_died(world: World) -> None:
    world.events["trigger"].set()
    with redis.Redis.from_url(conf.REDIS_URL) as client:
        for _ in range(3):
            begin("trigger", world)
        name = "functions.run_trigger:after_save of Note"
        for _ in range(3):
            client.lmove("celery:default", f"celery:overflow:{name}", "RIGHT", "LEFT")
        client.sadd("celery:overflows", name, "of a queue that is empty")
        with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False):
            app.tasks["backend.start_overflows"].delay()
            until(lambda: world.done.count("trigger") == 3, PATIENCE)
        overflow.start_all()
        assert client.smembers("celery:overflows") == set()


def test_two_webhooks_of_a_receiver_share_its_places(receiver: Receiver) -> None:
    may_answer = threading.Event()
    for class_name in ("Game", "Note"):
        declare(class_name, "afterSave", receiver.on("/", lambda item: may_answer.wait(PATIENCE)))
        for _ in range(3):
            master.make(class_name)
    threads = [threading.Thread(target=deliver_all) for _ in range(2)]
    for thread in threads:
        thread.start()
    receiver.wait_for(2)
    deliver_all()
    assert len(receiver.received) == 2
    may_answer.set()
    for thread in threads:
        thread.join(PATIENCE)


def test_the_sweep_starts_each_webhook_with_deliveries_that_are_due_once(
    receiver: Receiver,
) -> None:
    for class_name, count in (("Game", 5), ("Note", 1)):
        declare(class_name, "afterSave", receiver.on("/", {"success": None}))
        for _ in range(count):
            master.make(class_name)
    assert deliveries.start_due() == 2
    for _ in range(5):
        deliver_all()
    assert waiting() == []
    assert deliveries.start_due() == 0
