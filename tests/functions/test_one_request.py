"""What a request causes in other processes is in the log under the request's id."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from celery.contrib.testing.worker import start_worker
from structlog.contextvars import clear_contextvars

from backend.celery import app
from backend.kernel import principal
from backend.kernel.request_context import Current, as_current
from backend.logs import lines
from functions import TriggerRequest, after_save, job
from functions.jobs import runs
from functions.jobs.start import start
from functions.webhooks import deliveries
from functions.webhooks.models import Delivery
from tests.functions.test_background import queued
from tests.functions.webhooks.conftest import receiver as receiver
from tests.functions.webhooks.receiver import Receiver
from tests.polling import until
from tests.rest import MASTER, Api

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("emptied")]
END = b'{"event":"the end"}'


@pytest.fixture
def ids(capfd: pytest.CaptureFixture[str]) -> Callable[[str], list[str]]:
    """The request ids of the lines of an event."""
    lines.write(END)
    capfd.readouterr()

    def read(event: str) -> list[str]:
        lines.write(END)
        records = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        return [record["request_id"] for record in records if record["event"] == event]

    return read


def save(request_id: str) -> None:
    reply = Api(MASTER).call(
        "POST", "/classes/Note", {"text": "a"}, headers={"X-Request-Id": request_id}
    )
    assert reply.status == 201


def test_each_delivery_of_a_webhook_has_the_id_of_its_own_request(
    receiver: Receiver, ids: Callable[[str], list[str]]
) -> None:
    url = receiver.on("/", status=500)
    hook = {"className": "Note", "triggerName": "afterSave", "url": url, "background": True}
    assert Api(MASTER).post("/hooks/triggers", hook).status == 200
    for request_id in ("request-1", "request-2"):
        save(request_id)
    clear_contextvars()
    # A worker's task is of a webhook, and sends what is due first.
    for delivery in Delivery.objects.order_by("id"):
        deliveries.deliver(delivery.hook_id)
    assert ids("webhook not delivered") == ["request-1", "request-2"]


def test_a_background_trigger_has_the_id_of_the_save(ids: Callable[[str], list[str]]) -> None:
    @after_save("Note", background=True)
    def after(request: TriggerRequest) -> None:
        request.log.warning("in the trigger")

    queued()
    save("request-3")
    with start_worker(app, perform_ping_check=False, loglevel="warning"):
        until(lambda: ids("in the trigger") == ["request-3"], 30)


def test_a_run_has_the_id_of_the_request_that_started_it_also_when_its_message_was_lost(
    ids: Callable[[str], list[str]],
) -> None:
    seen: list[str] = []

    @job()
    def tidy(request: Any) -> None:
        seen.append(request.request_id)
        request.log.warning("in the job")

    with as_current(Current("request-4")):
        status_id = start("tidy", {}, source="api", principal=principal.MASTER)
    clear_contextvars()
    runs.execute(status_id)
    assert seen == ["request-4"]
    assert ids("in the job") == ["request-4"]
