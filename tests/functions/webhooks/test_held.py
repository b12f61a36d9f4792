"""Webhooks of a restored instance that is held: none is called until an operator resumes it."""

from __future__ import annotations

import pytest

from functions.webhooks import deliveries
from functions.webhooks.models import Delivery
from objects.database import hold
from tests.functions.webhooks.receiver import Receiver
from tests.held_instance import begin_hold
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db(transaction=True)

master = Api(MASTER)


@pytest.mark.parametrize("background", [False, True], ids=["in the request", "by a worker"])
def test_a_delivery_waits_without_an_attempt(receiver: Receiver, background: bool) -> None:
    url = receiver.on("/", {"success": None})
    hook = {"className": "Game", "triggerName": "afterSave", "url": url, "background": background}
    master.post("/hooks/triggers", hook)
    begin_hold()
    assert master.post("/classes/Game", {"name": "chess"}).status == 201
    delivery = Delivery.objects.get()
    deliveries.deliver(delivery.hook_id)
    assert deliveries.start_due() == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, receiver.received) == ("pending", 0, [])
    assert hold.release()
    deliveries.deliver(delivery.hook_id)
    assert len(receiver.received) == 1


def test_what_depends_on_a_webhook_is_refused(receiver: Receiver) -> None:
    url = receiver.on("/", {"success": "hello"})
    master.post("/hooks/triggers", {"className": "Game", "triggerName": "beforeSave", "url": url})
    master.post("/hooks/functions", {"functionName": "greet", "url": url})
    begin_hold()
    calls = [("/classes/Game", {"name": "chess"}), ("/functions/greet", {})]
    for path, body in calls:
        reply = master.post(path, body)
        assert reply.error == (400, 119)
        assert "webhooks are held until an operator runs script/man" in reply.json["error"]
        assert reply.headers["X-Svc-Mode"] == "held"
    assert receiver.received == []
    hold.release()
    assert master.post("/functions/greet", {}).json == {"result": "hello"}
