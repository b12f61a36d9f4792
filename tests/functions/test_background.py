"""Triggers that run in a worker."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from backend.celery import app
from backend.tasks import broker
from functions import TriggerRequest, after_save
from functions.triggers.tasks import run_trigger
from tests.people import make_role, sign_up
from tests.polling import until
from tests.rest import MASTER, Api

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("emptied")]


def queued() -> list[list[Any]]:
    """The arguments of the background triggers that wait in the broker; they are taken out."""
    observed = []
    with app.connection_for_read() as connection, connection.SimpleQueue("default") as queue:
        while True:
            try:
                message = queue.get(block=False)
            except queue.Empty:
                return observed
            message.ack()
            if message.headers["task"] == run_trigger.name:
                observed.append(json.loads(message.body)[0])


def test_a_background_trigger_is_run_by_a_worker_with_the_same_caller_and_context() -> None:
    master = Api(MASTER)
    calls: list[Any] = []
    queued()

    @after_save("Note", background=True)
    def after(request: TriggerRequest) -> None:
        calls.append(
            (
                request.object["text"],
                request.original and request.original["text"],
                request.user_id,
                sorted(request.roles),
                request.context,
            )
        )

    ann = sign_up("ann")
    make_role(master, "Team", [ann])
    master.post("/schemas/Note", {"fields": {"text": {"type": "String"}}})
    reply = ann.call(
        "POST", "/classes/Note", {"text": "a"}, headers={"X-Svc-Cloud-Context": '{"n": 1}'}
    )
    assert reply.status == 201
    assert calls == []
    (arguments,) = queued()
    assert ann.token not in json.dumps(arguments)
    run_trigger.run(*arguments)
    assert calls == [("a", None, ann.user_id, ["Team"], {"n": 1})]


def test_of_a_transaction_that_is_undone_nothing_is_queued() -> None:
    master = Api(MASTER)
    queued()

    @after_save("Note", background=True)
    def after(request: TriggerRequest) -> None: ...

    items = [
        {"method": "POST", "path": "/api/classes/Note", "body": {"text": "a"}},
        {"method": "POST", "path": "/api/classes/Note", "body": {"no good": "a"}},
    ]
    assert master.post("/batch", {"requests": items, "transaction": True}).error == (400, 105)
    assert queued() == []


def test_a_trigger_that_is_not_there_any_more_is_left_out() -> None:
    message = {"authority": "master", "roles": [], "user_id": None}
    run_trigger.run("after_save", "Gone", "Gone", message, {"a": 1}, None, {})


def test_a_task_that_can_t_be_sent_holds_up_no_other() -> None:
    queued()
    arrived: list[Any] = []
    broker._broker.send_later(run_trigger, [object()] * 7)
    broker._broker.send_later(run_trigger, [*range(7)])

    def second_arrives() -> bool:
        arrived.extend(queued())
        return arrived == [[*range(7)]]

    until(second_arrives, 30)


def test_sending_takes_no_more_connections_with_time() -> None:
    queued()
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda n: broker.send(run_trigger, *[n] * 7), range(20)):
            pass
    producers, connections = sizes()
    for n in range(100):
        broker.send(run_trigger, *[n] * 7)
    assert sizes() == (producers, connections)
    assert len(queued()) == 120


def sizes() -> tuple[int, int]:
    """How many producers and connections are kept for sending."""
    pool = broker._broker._pool()
    return len(pool._resource.queue), len(pool.connections._resource.queue)
