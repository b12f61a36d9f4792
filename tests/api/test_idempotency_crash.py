"""A process is killed: requests with an id are neither blocked for ever nor carried out twice."""

from __future__ import annotations

import http.client
import os
import signal
import threading

import psutil
import pytest
from django.db import connection, transaction

from tests.other_process import OtherProcess, other_process
from tests.rest import MASTER, Api
from tests.threads import wait_until_somebody_waits_for_us

pytestmark = pytest.mark.django_db(transaction=True)

HEADERS = {"X-Svc-Request-Id": "3b241101-e2bb-4255-8caf-4136c566a962"}
INCREMENT = {"score": {"__op": "Increment", "amount": 1}}


class Sender:
    """A caller of the process that is killed, and after that of this one."""

    def __init__(self, kind: str) -> None:
        self.game = f"/classes/Game/{Api(MASTER).make('Game', score=0)}"
        item = {"method": "PUT", "path": f"/api{self.game}", "body": INCREMENT}
        self.method, self.path, self.body = {
            "PUT": ("PUT", self.game, INCREMENT),
            "batch": ("POST", "/batch", {"requests": [item]}),
        }[kind]

    def to(self, process: OtherProcess):
        return process.call(self.method, self.path, self.body, HEADERS)

    def here(self):
        return Api({**MASTER, **HEADERS}).call(self.method, self.path, self.body)

    def score(self) -> int:
        number: int = Api(MASTER).get(self.game).json["score"]
        return number


@pytest.fixture(params=["PUT", "batch"])
def sender(request):
    return Sender(request.param)


def kill(process: OtherProcess) -> None:
    """As the machine would: without a word, together with the processes that it has started."""
    parent = psutil.Process(process.pid)
    for item in (*parent.children(recursive=True), parent):
        os.kill(item.pid, signal.SIGKILL)
    parent.wait(30)


def _is_broken_off_by_a_kill(sender: Sender, process: OtherProcess) -> bool:
    """Kill the process while it waits for the row that it writes; return whether the caller sees
    it."""
    outcome: list[bool] = []
    sending = threading.Thread(target=lambda: outcome.append(_broken_off(sender, process)))
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM objects_object FOR UPDATE")
        sending.start()
        wait_until_somebody_waits_for_us()
        kill(process)
    sending.join(30)
    return outcome == [True]


@pytest.mark.slow
def test_killed_in_the_middle_of_the_write(sender):
    with other_process() as process:
        assert _is_broken_off_by_a_kill(sender, process)
    reply = sender.here()
    assert reply.status == 200
    assert sender.here().json == reply.json
    assert sender.score() == 1


@pytest.mark.slow
def test_killed_after_the_answer(sender):
    with other_process() as process:
        status, answer = sender.to(process)
        kill(process)
    reply = sender.here()
    assert (reply.status, reply.json) == (status, answer)
    assert reply.headers["Idempotent-Replayed"] == "true"
    assert sender.score() == 1


@pytest.mark.slow
def test_where_repetitions_are_rejected_a_killed_write_may_be_sent_again(sender, settings):
    settings.SERVICE = {**settings.SERVICE, "IDEMPOTENCY_MODE": "reject"}
    with other_process(IDEMPOTENCY_MODE="reject") as process:
        assert _is_broken_off_by_a_kill(sender, process)
    assert sender.here().status == 200
    assert sender.here().error == (400, 159)
    assert sender.score() == 1


@pytest.mark.slow
def test_where_repetitions_are_rejected_an_answered_write_is_not_repeated(sender, settings):
    settings.SERVICE = {**settings.SERVICE, "IDEMPOTENCY_MODE": "reject"}
    with other_process(IDEMPOTENCY_MODE="reject") as process:
        assert sender.to(process)[0] == 200
        kill(process)
    assert sender.here().error == (400, 159)
    assert sender.score() == 1


def _broken_off(sender: Sender, process: OtherProcess) -> bool:
    try:
        sender.to(process)
    except (http.client.HTTPException, OSError):
        return True
    return False
