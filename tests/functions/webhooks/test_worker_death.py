"""Deliveries survive the worker that was sending them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from functions.webhooks import deliveries
from functions.webhooks.models import Delivery
from tests.functions.jobs.processes import Processes, until
from tests.functions.webhooks.receiver import Received, Receiver
from tests.functions.webhooks.test_outbox import declare, master, pass_time

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


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
