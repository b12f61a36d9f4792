"""Deliveries survive the worker that was sending them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from time import time
from typing import Any, Final

import pytest
import redis
from celery.contrib.testing.worker import start_worker
from django.conf import settings as conf

from backend.celery import app
from functions import TriggerRequest, after_save
from functions.webhooks import deliveries
from functions.webhooks.models import Delivery
from tests.functions.jobs.processes import Processes, until
from tests.functions.webhooks.receiver import Received, Receiver
from tests.functions.webhooks.test_outbox import declare, master, pass_time
from tests.mail_server import MailServer
from tests.people import sign_up

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]

TAKEN: Final = "celery:unacked_index"
"""The tasks that workers have, with the times of their holds."""


@pytest.fixture
def processes(settings: Any) -> Iterator[Processes]:
    with redis.Redis.from_url(settings.REDIS_URL) as store:
        store.flushdb()
        results = Processes("")
        results.environment["WEBHOOK_ALLOW_PRIVATE"] = "127.0.0.0/8"
        results.environment["WEBHOOK_TIMEOUT"] = "25"
        yield results
        results.stop()
        store.flushdb()


@pytest.mark.slow
def test_a_delivery_outlives_a_worker_that_is_killed(
    receiver: Receiver, processes: Processes
) -> None:
    may_answer = threading.Event()

    def answer(item: Received) -> Any:
        may_answer.wait(60)
        return {"success": None}

    declare("Game", "afterSave", receiver.on("/", answer))
    game = master.make("Game")
    processes.start("worker")
    receiver.wait_for(1, seconds=90)
    processes.kill("worker")
    may_answer.set()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == ("pending", 1)
    pass_time(100)
    processes.start("worker")
    assert deliveries.start_due() == 1
    until(lambda: Delivery.objects.get().state == "delivered")
    first, second = receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.raw == second.raw
    assert second.json["object"]["objectId"] == game


@pytest.mark.slow
def test_many_deliveries_to_a_receiver_that_hangs_outlive_a_worker_that_is_killed(
    receiver: Receiver, processes: Processes
) -> None:
    may_answer = threading.Event()

    def answer(item: Received) -> Any:
        may_answer.wait(60)
        return {"success": None}

    declare("Game", "afterSave", receiver.on("/", answer))
    games = [master.make("Game") for _ in range(12)]
    processes.start("worker")
    receiver.wait_for(1, seconds=90)
    processes.kill("worker")
    may_answer.set()
    pass_time(100)
    processes.start("worker")
    deliveries.start_due()
    until(lambda: {*Delivery.objects.values_list("state", flat=True)} == {"delivered"})
    received = [item.json["object"]["objectId"] for item in receiver.received]
    assert {*received} == {*games}
    assert len(received) <= len(games) + 2, "only those that were being sent are sent twice"


@pytest.mark.slow
def test_an_email_outlives_a_worker_that_is_killed(processes: Processes) -> None:
    may_answer = threading.Event()
    server = MailServer(may_answer)
    host, port = server.server_address[:2]
    processes.environment |= {"EMAIL_HOST": str(host), "EMAIL_PORT": str(port)}
    processes.environment |= {"EMAIL_TIMEOUT": "60", "EMAIL_USE_TLS": "off"}
    user_id = sign_up("ann", email="ann@example.org").user_id
    app.tasks["objects.mail_link"].delay("reset", user_id=user_id)
    processes.start("worker")
    until(lambda: server.connections)
    processes.kill("worker")
    may_answer.set()
    with redis.Redis.from_url(conf.REDIS_URL) as store:
        assert store.zcard(TAKEN) == 1
        for tag, moment in store.zscan_iter(TAKEN):
            store.zadd(TAKEN, {tag: moment - 180})
    processes.start("worker")
    until(lambda: server.accepted)
    assert server.accepted == 1
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_worker_that_lives_renews_its_hold_on_tasks_however_long_they_take() -> None:
    may_end = threading.Event()

    @after_save("Note", background=True)
    def after(request: TriggerRequest) -> None:
        may_end.wait(60)

    with redis.Redis.from_url(conf.REDIS_URL) as store:
        store.flushdb()
        master.make("Note")
        with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False):
            until(lambda: store.zcard(TAKEN))
            for tag, moment in store.zscan_iter(TAKEN):
                store.zadd(TAKEN, {tag: moment - 100})
                until(lambda tag=tag: time() - store.zscore(TAKEN, tag) < 50)
            may_end.set()
        assert store.zcard(TAKEN) == 0
        store.flushdb()


@pytest.mark.slow
def test_a_task_that_outlives_its_connection_to_redis_is_held_and_done_once() -> None:
    may_end, began = threading.Event(), threading.Semaphore(0)

    @after_save("Note", background=True)
    def after(request: TriggerRequest) -> None:
        began.release()
        may_end.wait(60)

    with redis.Redis.from_url(conf.REDIS_URL) as store:
        store.flushdb()
        master.make("Note")
        with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False):
            assert began.acquire(timeout=60)
            ((tag, moment),) = store.zscan_iter(TAKEN)
            own = store.client_id()
            for connection in store.client_list():
                if int(connection["id"]) != own:
                    store.client_kill_filter(_id=connection["id"])
            store.zadd(TAKEN, {tag: moment - 100})
            until(lambda: time() - (store.zscore(TAKEN, tag) or 0) < 50)
            may_end.set()
            # Its acknowledgement is lost with the connection.
            until(lambda: store.zcard(TAKEN) == 0)
            assert store.hlen("celery:unacked") == 0
            assert not began.acquire(blocking=False)
        store.flushdb()
