"""After-triggers of webhooks: delivered at least once, by a worker."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from celery.contrib.testing.worker import start_worker
from django.db import connection, transaction
from django.utils import timezone

from backend.celery import app
from functions.webhooks import deliveries
from functions.webhooks.models import Delivery, Hook
from tests.functions.webhooks.receiver import Receiver
from tests.people import log_in, sign_up
from tests.rest import MASTER, Api
from tests.stored_times import move_back
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)

master = Api(MASTER)


def declare(class_name: str, trigger: str, url: str) -> None:
    """Declare a webhook that only workers deliver."""
    hook = {"className": class_name, "triggerName": trigger, "url": url, "background": True}
    assert master.post("/hooks/triggers", hook).json == hook


def waiting() -> list[Delivery]:
    return [*Delivery.objects.filter(state="pending").order_by("id")]


def deliver_all() -> None:
    """What workers do with all that is due."""
    for item in waiting():
        deliveries.deliver(item.hook_id)


def pass_time(seconds: float) -> None:
    """Let this much time have passed for all deliveries and webhooks."""
    move_back(
        seconds,
        ("functions_delivery", "due_at"),
        ("functions_delivery", "ended_at"),
        ("functions_hook", "rests_until"),
    )


def test_small_saves_of_a_user_with_a_large_account_store_little(receiver: Receiver) -> None:
    master.post("/schemas/Game", {"fields": {"name": {"type": "String"}}})
    declare("Game", "afterSave", receiver.on("/", raw=b""))
    ann = sign_up("ann")
    ann.put(f"/users/{ann.user_id}", {"note": "n" * 100_000})
    ann.make("Game", name="chess")
    (delivery,) = waiting()
    assert len(delivery.body) < 10_000
    user = json.loads(delivery.body)["user"]
    assert user == {"__type": "Pointer", "className": "_User", "objectId": ann.user_id}


def test_a_save_is_told_when_it_is_done(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": None}))
    game = master.make("Game", name="chess")
    master.put(f"/classes/Game/{game}", {"name": "go"})
    assert receiver.received == []
    deliver_all()
    new, changed = (item.json for item in receiver.received)
    assert new["triggerName"] == "afterSave"
    assert new["object"]["objectId"] == game
    assert new["object"]["createdAt"] == new["object"]["updatedAt"]
    assert (new["object"]["className"], new["object"]["name"]) == ("Game", "chess")
    assert (changed["object"]["name"], changed["original"]["name"]) == ("go", "chess")
    assert waiting() == []
    assert {item.state for item in Delivery.objects.all()} == {"delivered"}


@pytest.mark.parametrize("body", [b"", b"thanks", b"{}", b'{"success": {"name": "other"}}'])
def test_any_answer_with_status_2xx_will_do(receiver: Receiver, body: bytes) -> None:
    declare("Game", "afterDelete", receiver.on("/", raw=body, status=202))
    game = master.make("Game", name="chess")
    master.delete(f"/classes/Game/{game}")
    deliver_all()
    (event,) = (item.json for item in receiver.received)
    assert (event["triggerName"], event["object"]["name"]) == ("afterDelete", "chess")
    assert Delivery.objects.get().state == "delivered"


def test_what_is_undone_is_never_reported(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": None}))
    requests = [
        {"method": "POST", "path": "/api/classes/Game", "body": {"n": 1}},
        {"method": "POST", "path": "/api/classes/Game", "body": {"n": "text"}},
    ]
    reply = master.post("/batch", {"requests": requests, "transaction": True})
    assert reply.error == (400, 111)
    assert not Delivery.objects.exists()


def test_what_can_not_be_written_down_is_not_done(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": None}))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE functions_delivery ADD CONSTRAINT none CHECK (false)")
    try:
        assert master.post("/classes/Game", {"n": 1}).status == 500
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE functions_delivery DROP CONSTRAINT none")
    assert master.results("Game") == []


def test_a_failed_delivery_is_repeated_with_the_same_id_and_growing_pauses(
    receiver: Receiver,
) -> None:
    declare("Game", "afterSave", receiver.on("/", {"error": "not now"}, status=500))
    master.make("Game")
    for attempt, pause in enumerate(deliveries.PAUSES, 1):
        deliver_all()
        (delivery,) = waiting()
        assert (delivery.attempts, delivery.last_error) == (attempt, "not now")
        pass_time(pause * 0.9)
        deliver_all()
        assert len(receiver.received) == attempt, "it was sent too early"
        pass_time(pause * 0.4)
    receiver.on("/", {"success": 1})
    deliver_all()
    assert Delivery.objects.get().state == "delivered"
    assert len(receiver.received) == deliveries.ATTEMPTS
    assert len({delivery.headers["webhook-id"] for delivery in receiver.received}) == 1
    assert len({delivery.raw for delivery in receiver.received}) == 1


def test_it_is_given_up_in_the_end_and_kept(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {}, status=404))
    master.make("Game")
    for _ in range(deliveries.ATTEMPTS + 2):
        deliver_all()
        pass_time(100_000)
    (dead,) = Delivery.objects.all()
    assert dead.state == "dead"
    assert dead.last_error == "it responded with status 404"
    assert len(receiver.received) == deliveries.ATTEMPTS
    receiver.on("/", {"success": 1})
    assert deliveries.redeliver([dead.id]) == 1
    deliver_all()
    assert Delivery.objects.get().state == "delivered"
    assert receiver.received[-1].headers["webhook-id"] == dead.key


def test_one_who_does_not_answer_is_left_alone_for_a_while(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": 1}))
    for _ in range(5):
        master.make("Game")
    address = receiver.url
    receiver.stop()
    deliver_all()
    assert sorted(item.attempts for item in waiting()) == [0, 0, 0, 0, 1]
    (failed,) = (item for item in waiting() if item.attempts)
    assert failed.last_error == "the connection was refused"
    assert address not in failed.last_error
    assert Hook.objects.get().rests_until is not None


def test_one_who_rests_in_the_future_since_the_clock_was_set_back_is_told_at_once(
    receiver: Receiver,
) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": 1}))
    master.make("Game")
    for minutes, received in ((0, 0), (60, 1)):
        Hook.objects.update(rests_until=timezone.now() + timedelta(minutes=minutes, seconds=20))
        deliver_all()
        assert len(receiver.received) == received
        pass_time(30)


def test_a_removed_webhook_is_told_nothing_more(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": 1}))
    master.make("Game")
    master.delete("/hooks/triggers/Game/afterSave")
    deliver_all()
    assert receiver.received == []
    assert Delivery.objects.get().state == "dead"
    assert Delivery.objects.get().last_error == "the webhook was removed"


def test_a_new_address_is_told_what_the_old_one_was_not(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/old", {}, status=500))
    master.make("Game")
    deliver_all()
    master.put("/hooks/triggers/Game/afterSave", {"url": receiver.on("/new", {"success": 1})})
    pass_time(100)
    deliver_all()
    assert [item.path for item in receiver.received] == ["/old", "/new"]


def test_two_workers_send_it_once(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": 1}))
    master.make("Game")
    (delivery,) = waiting()
    at_once([lambda: deliveries.deliver(delivery.hook_id)] * 4)
    assert len(receiver.received) == 1


def test_what_another_worker_is_taking_is_not_waited_for(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": 1}))
    master.make("Game")
    (delivery,) = waiting()
    with transaction.atomic():
        Delivery.objects.select_for_update().get(id=delivery.id)
        at_once([lambda: deliveries.deliver(delivery.hook_id)])
        assert at_once([deliveries.start_due]) == [0]
    assert receiver.received == []


def test_it_is_sent_again_if_a_worker_dies_while_it_sends(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": 1}))
    master.make("Game")
    (delivery,) = waiting()
    assert deliveries._claim(delivery.hook_id) is not None  # and never comes back
    assert deliveries.start_due() == 0
    pass_time(100)
    assert deliveries.start_due() == 1
    deliver_all()
    assert len(receiver.received) == 1
    assert Delivery.objects.get().state == "delivered"


def test_a_worker_that_dies_at_the_last_attempt_leaves_it_given_up(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": 1}))
    master.make("Game")
    Delivery.objects.update(attempts=deliveries.ATTEMPTS)
    deliver_all()
    assert Delivery.objects.get().state == "dead"


def test_old_deliveries_are_removed(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": 1}))
    master.make("Game")
    deliver_all()
    master.make("Game")
    pass_time(6 * 86_400)
    assert deliveries.prune() == 0
    pass_time(2 * 86_400)
    assert deliveries.prune() == 1
    assert [row.state for row in Delivery.objects.all()] == ["pending"]


def test_sign_ins_files_and_parameters_are_told_of(receiver: Receiver) -> None:
    url = receiver.on("/", {"success": 1})
    for class_name, trigger in (
        ("_User", "afterLogin"),
        ("_Session", "afterLogout"),
        ("@File", "afterSave"),
        ("@File", "afterDelete"),
        ("@Config", "afterSave"),
    ):
        declare(class_name, trigger, url)
    ann = sign_up("ann")
    log_in("ann")
    ann.post("/logout")
    file = master.call("POST", "/files/a.txt", raw=b"a", content_type="text/plain").json["name"]
    master.delete(f"/files/{file}")
    master.put("/config", {"params": {"a": 1}})
    deliver_all()
    bodies = [item.json for item in receiver.received]
    assert [(item["object"]["className"], item["triggerName"]) for item in bodies] == [
        ("_User", "afterLogin"),
        ("_Session", "afterLogout"),
        ("@File", "afterSave"),
        ("@File", "afterDelete"),
        ("@Config", "afterSave"),
    ]
    assert bodies[0]["user"]["objectId"] == ann.user_id
    assert bodies[4]["object"] == {"className": "@Config", "params": {"a": 1}}
    for item in receiver.received:
        assert ann.token.encode() not in item.raw


@pytest.mark.slow
def test_a_worker_delivers(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", {"success": 1}))
    with start_worker(app, perform_ping_check=False, loglevel="warning"):
        game = master.make("Game")
        (body,) = receiver.wait_for(1)
    assert body.json["object"]["objectId"] == game


def test_what_the_broker_has_lost_is_found_by_the_sweep(receiver: Receiver, settings: Any) -> None:
    import redis

    declare("Game", "afterSave", receiver.on("/", {"success": 1}))
    master.make("Game")
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.flushdb()
    with start_worker(app, perform_ping_check=False, loglevel="warning"):
        app.tasks["functions.deliver_due"].delay()
        receiver.wait_for(1)
