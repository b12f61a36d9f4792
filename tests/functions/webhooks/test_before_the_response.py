"""Webhooks after an operation are called before the client gets its response."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connections

from backend.kernel.outgoing import spare_turn
from functions import before_save, function
from functions.webhooks import deliveries
from functions.webhooks.models import Delivery, Hook
from tests.functions.webhooks.receiver import Received, Receiver
from tests.functions.webhooks.test_outbox import deliver_all, pass_time
from tests.people import PASSWORD, log_in, sign_up
from tests.rest import CLIENT, MASTER, Api

pytestmark = pytest.mark.django_db(transaction=True)

master = Api(MASTER)


def declare(class_name: str, trigger: str, url: str, **more: Any) -> None:
    hook = {"className": class_name, "triggerName": trigger, "url": url, **more}
    assert master.post("/hooks/triggers", hook).json == hook


def limit(settings: Any, **limits: int) -> None:
    settings.SERVICE = {**settings.SERVICE, **limits}


def states() -> list[tuple[str, int]]:
    return [*Delivery.objects.order_by("id").values_list("state", "attempts")]


def test_every_webhook_after_an_operation_is_called_before_the_response(
    receiver: Receiver,
) -> None:
    def declared(class_name: str, trigger: str) -> None:
        declare(class_name, trigger, receiver.on(f"/{trigger}", raw=b""))

    declared("Game", "afterSave")
    declared("Game", "afterDelete")
    declared("_User", "afterLogin")
    declared("_Session", "afterLogout")
    game = master.make("Game", name="chess")
    assert len(receiver.received) == 1
    master.put(f"/classes/Game/{game}", {"name": "go"})
    assert len(receiver.received) == 2
    master.delete(f"/classes/Game/{game}")
    assert len(receiver.received) == 3
    ann = sign_up("ann")
    log_in("ann")
    assert len(receiver.received) == 4
    ann.post("/logout")
    saved, changed, deleted, login, logout = (item.json for item in receiver.received)
    assert (saved["object"]["name"], "original" in saved) == ("chess", False)
    assert (changed["object"]["name"], changed["original"]["name"]) == ("go", "chess")
    assert (deleted["triggerName"], deleted["object"]["objectId"]) == ("afterDelete", game)
    assert login["object"]["objectId"] == login["user"]["objectId"] == ann.user_id
    assert logout["object"]["user"] == ann.pointer
    assert states() == [("delivered", 1)] * 5


def test_an_error_of_after_save_is_not_the_clients_and_a_worker_tries_again(
    receiver: Receiver,
) -> None:
    declare("Game", "afterSave", receiver.on("/", {"error": {"code": 4000, "error": "no"}}))
    game = master.make("Game")
    (delivery,) = Delivery.objects.all()
    assert (delivery.state, delivery.attempts, delivery.last_error) == ("pending", 1, "no")
    assert master.get(f"/classes/Game/{game}").status == 200
    receiver.on("/", raw=b"")
    pass_time(100)
    deliver_all()
    assert states() == [("delivered", 2)]
    first, second = receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


@pytest.mark.parametrize("trigger", ["afterDelete", "afterLogin", "afterLogout"])
def test_errors_of_others_are_the_response_to_what_is_done(
    receiver: Receiver, trigger: str
) -> None:
    class_name = {"afterDelete": "Game", "afterLogin": "_User", "afterLogout": "_Session"}[trigger]
    game, ann = master.make("Game"), sign_up("ann")
    declare(class_name, trigger, receiver.on("/", {"error": {"code": 4000, "error": "no"}}))
    if trigger == "afterDelete":
        reply = master.delete(f"/classes/Game/{game}")
        assert master.get(f"/classes/Game/{game}").error == (404, 101)
    elif trigger == "afterLogin":
        reply = log_in("ann")
        assert len(master.results("_Session")) == 2
    else:
        reply = ann.post("/logout")
        assert ann.get("/users/me").error == (400, 209)
    assert (reply.status, reply.json) == (400, {"code": 4000, "error": "no"})
    assert states() == [("delivered", 1)], "the receiver has said it, and the client knows"


def test_errors_about_what_server_code_does_are_not_the_response(receiver: Receiver) -> None:
    def remove_another(request: Any) -> None:
        request.objects("Game").delete(request.objects("Game").first())

    function("tidy")(remove_another)
    before_save("Player")(remove_another)
    master.make("Game")
    master.make("Game")
    declare("Game", "afterDelete", receiver.on("/", {"error": "no"}))
    assert master.post("/functions/tidy").json == {"result": None}
    assert master.post("/classes/Player").status == 201
    assert len(receiver.received) == 2
    assert states() == [("pending", 1)] * 2


def test_in_a_batch_the_error_is_that_of_its_request(receiver: Receiver) -> None:
    first, second = master.make("Game", n=1), master.make("Game", n=2)

    def answer(item: Received) -> Any:
        return {"error": "not one"} if item.json["object"]["n"] == 1 else {}

    declare("Game", "afterDelete", receiver.on("/", answer))
    requests = [
        {"method": "DELETE", "path": f"/api/classes/Game/{game}"} for game in (first, second)
    ]
    answers = master.post("/batch", {"requests": requests}).json
    assert answers == [{"error": {"code": 141, "error": "not one"}}, {"success": {}}]
    third = master.make("Game", n=1)
    requests = [{"method": "DELETE", "path": f"/api/classes/Game/{third}"}]
    reply = master.post("/batch", {"requests": requests, "transaction": True})
    assert reply.json == [{"success": {}}], "all of it is committed"


def test_a_background_webhook_is_left_to_the_worker(receiver: Receiver) -> None:
    declare("Game", "afterSave", receiver.on("/", raw=b""), background=True)
    master.make("Game")
    assert receiver.received == []
    assert states() == [("pending", 0)]
    deliver_all()
    assert states() == [("delivered", 1)]
    changed = master.put("/hooks/triggers/Game/afterSave", {"background": False})
    assert "background" not in changed.json
    master.make("Game")
    assert len(receiver.received) == 2


def test_a_receiver_that_hangs_holds_a_request_for_a_limited_time_and_is_then_left_alone(
    receiver: Receiver, settings: Any
) -> None:
    may_end = threading.Event()

    def answer(item: Received) -> Any:
        may_end.wait(60)
        return {}

    limit(settings, WEBHOOK_AFTER_TIMEOUT=1)
    declare("Game", "afterSave", receiver.on("/", answer))
    try:
        master.make("Game")
        assert not may_end.is_set(), "the receiver still waits"
        (delivery,) = Delivery.objects.all()
        assert (delivery.attempts, delivery.last_error) == (1, "it took longer than 1 seconds")
        assert Hook.objects.get().rests_until is not None
        for _ in range(3):
            master.make("Game")
        assert len(receiver.received) == 1, "a receiver that doesn't respond is paused"
    finally:
        may_end.set()


def test_the_webhooks_of_a_batch_share_the_time(receiver: Receiver, settings: Any) -> None:
    def answer(item: Received) -> Any:
        threading.Event().wait(0.1)  # a slow receiver
        return {}

    limit(settings, WEBHOOK_AFTER_TIMEOUT=1)
    declare("Game", "afterSave", receiver.on("/", answer))
    requests = [{"method": "POST", "path": "/api/classes/Game", "body": {"n": n}} for n in range(9)]
    answers = master.post("/batch", {"requests": requests}).json
    assert all("success" in answer for answer in answers)
    assert 1 <= len(receiver.received) < len(requests)
    assert Hook.objects.get().rests_until is None, "slow, but it responds"
    deliver_all()
    assert {state for state, _ in states()} == {"delivered"}


@pytest.mark.slow
def test_webhooks_that_a_request_depends_on_share_its_time(
    receiver: Receiver, settings: Any
) -> None:
    def answer(item: Received) -> Any:
        threading.Event().wait(2)  # a slow receiver
        return {}

    limit(settings, WEBHOOK_REQUEST_TIMEOUT=3)
    declare("Game", "beforeSave", receiver.on("/", answer))
    requests = [{"method": "POST", "path": "/api/classes/Game", "body": {"n": n}} for n in range(3)]
    first, second, third = master.post("/batch", {"requests": requests}).json
    assert "success" in first
    assert second["error"]["code"] == third["error"]["code"] == 141
    assert third["error"]["error"] == (
        "The webhook for the trigger beforeSave of Game failed: the webhooks of this request took"
        " longer than 3 seconds."
    )
    assert master.post("/classes/Game", {"n": 4}).status == 201


def test_without_time_or_a_free_turn_a_worker_delivers(receiver: Receiver, settings: Any) -> None:
    declare("Game", "afterSave", receiver.on("/", raw=b""))
    limit(settings, WEBHOOK_AFTER_TIMEOUT=0)
    master.make("Game")
    limit(settings, WEBHOOK_AFTER_TIMEOUT=5)
    with ExitStack() as held:
        while held.enter_context(spare_turn()):
            pass
        master.make("Game")
    assert states() == [("pending", 0)] * 2
    assert receiver.received == []
    assert Hook.objects.get().rests_until is None
    master.make("Game")
    assert len(receiver.received) == 1


def test_what_is_saved_outside_of_a_request_is_left_to_the_worker(receiver: Receiver) -> None:
    from backend.kernel.principal import MASTER as MASTER_KEY
    from objects import service
    from objects.core.names import check_class_name

    declare("Game", "afterSave", receiver.on("/", raw=b""))
    service.create(MASTER_KEY, check_class_name("Game"), {})
    assert (receiver.received, states()) == ([], [("pending", 0)])


def test_a_process_that_is_killed_while_it_sends_loses_nothing(receiver: Receiver) -> None:
    may_answer = threading.Event()

    def answer(item: Received) -> Any:
        may_answer.wait(60)
        return {}

    declare("Game", "afterSave", receiver.on("/", answer))
    connections.close_all()
    child = os.fork()
    if child == 0:
        master.make("Game", name="chess")
        os._exit(0)
    try:
        receiver.wait_for(1)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        may_answer.set()
    assert [game["name"] for game in master.results("Game")] == ["chess"]
    assert states() == [("pending", 1)]
    assert deliveries.start_due() == 0
    pass_time(100)
    deliver_all()
    first, second = receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert states() == [("delivered", 2)]


def test_a_receiver_that_saves_the_same_class_does_not_stop_the_service(
    receiver: Receiver,
) -> None:
    def answer(item: Received) -> Any:
        if item.json["object"]["n"] < 30:
            reply = master.post("/classes/Game", {"n": item.json["object"]["n"] + 1})
            assert reply.status == 201
            connections.close_all()
        return {}

    declare("Game", "afterSave", receiver.on("/", answer))
    master.make("Game", n=0)
    assert 1 <= len(receiver.received) < 30
    assert "pending" in {state for state, _ in states()}


def test_a_login_shows_no_password_and_no_token(receiver: Receiver) -> None:
    declare("_User", "afterLogin", receiver.on("/", raw=b""))
    ann = sign_up("ann")
    token = log_in("ann").json["sessionToken"]
    headers = {"X-Svc-Session-Token": ann.token, "X-Svc-Installation-Id": "phone", "X-App": "1"}
    assert Api({**CLIENT, **headers}).get("/login", username="ann", password=PASSWORD).status == 200
    for item in receiver.received:
        for secret in (PASSWORD, token, ann.token, CLIENT["X-Svc-REST-API-Key"]):
            assert secret.encode() not in item.raw
    body = receiver.received[-1].json
    assert (body["installationId"], body["headers"]["x-app"]) == ("phone", "1")
