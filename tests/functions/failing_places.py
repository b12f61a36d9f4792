"""The places where code of a deployment runs: each calls the code and checks the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from http.client import HTTPConnection
from typing import Any, TypeVar

import pytest
from django.core.management import CommandError, call_command

from backend.kernel.errors import ServiceError
from backend.kernel.principal import CLIENT, MASTER
from functions.jobs import records
from functions.jobs.models import JobStatus
from functions.jobs.runs import execute
from functions.triggers.tasks import run_trigger
from objects import triggers
from objects.core.names import SESSION, USER
from objects.push.adapters.base import INTERNAL_ERROR, SENT, Message, Outcome
from objects.push.delivery import Sender
from objects.push.models import PushTarget
from objects.push.requests import PushRequest
from objects.triggers import Occasion
from tests.backend.server.running import Running
from tests.functions.failing_code import Code
from tests.objects.push.recorder import adapters
from tests.rest import CLIENT as CLIENT_KEYS
from tests.rest import MASTER as MASTER_KEYS
from tests.subscribers import KEYS, Realtime, Subscriber
from tests.threads import at_once

PASSWORD = "correct horse"
Act = Callable[[Any], object]
_T = TypeVar("_T")


class Instance:
    """A web process, a realtime process and the deployment's code, in the process of the test."""

    def __init__(self, web: Running, realtime: Realtime, code: Code) -> None:
        self.web = web
        self.realtime = realtime
        self.code = code
        made = self.call("POST", "/classes/Thing", {"n": 1}, ok=True, master=True)
        self.object_id = made["objectId"]
        user = {"username": "doomed", "password": PASSWORD}
        self.call("POST", "/users", user, ok=True)
        self.subscriber: Subscriber = realtime.subscriber()
        self.subscriber.subscribe(1, "Thing")

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        ok: bool | None = None,
        master: bool = False,
    ) -> Any:
        """The JSON of the response. ``ok`` is whether it has to be a success."""
        connection = HTTPConnection("127.0.0.1", self.web.port, timeout=60)
        headers = {**(MASTER_KEYS if master else CLIENT_KEYS), "Content-Type": "application/json"}
        raw = None if body is None else json.dumps(body)
        connection.request(method, f"/api{path}", raw, headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        if response.status >= 400:
            assert set(answer) == {"code", "error"}
            assert isinstance(answer["code"], int)
            assert len(answer["error"]) <= 10_000
        if ok is not None:
            assert (response.status < 400) is ok, answer
        return answer

    def goes_on(self) -> None:
        """The threads and the sockets do their work as before."""
        for _ in range(4):
            assert self.call("POST", "/functions/plain", {}, ok=True) == {"result": None}
        self.call("PUT", f"/classes/Thing/{self.object_id}", {"n": 2}, ok=True)
        assert self.subscriber.next()["op"] == "update"


def in_thread(action: Callable[[], _T]) -> _T:
    return at_once([action])[0]


def function(instance: Instance) -> None:
    instance.call("POST", "/functions/plain", {}, ok=False)


def validator(instance: Instance) -> None:
    instance.call("POST", "/functions/checked", {"checked": {"value": 1}}, ok=False)


def on_commit(instance: Instance) -> None:
    assert instance.call("POST", "/functions/committing", {}, ok=True) == {"result": "done"}


def before_save(instance: Instance) -> None:
    instance.call("POST", "/classes/Thing", {"n": 1}, ok=False)


def after_save(instance: Instance) -> None:
    instance.call("POST", "/classes/Thing", {"n": 1}, ok=True)
    assert instance.subscriber.next()["op"] == "create"


def before_delete(instance: Instance) -> None:
    instance.call("DELETE", f"/classes/Thing/{instance.object_id}", ok=False)


def after_delete(instance: Instance) -> None:
    with instance.code.armed("", lambda request: None):
        made = instance.call("POST", "/classes/Thing", {"n": 1}, ok=True)["objectId"]
    instance.code.place = "after_delete"
    instance.call("DELETE", f"/classes/Thing/{made}", ok=True)
    assert instance.subscriber.next()["op"] == "create"
    assert instance.subscriber.next()["op"] == "delete"


def before_find(instance: Instance) -> None:
    instance.call("GET", "/classes/Thing", ok=False)


def after_find(instance: Instance) -> None:
    instance.call("GET", "/classes/Thing", ok=False)


def before_login(instance: Instance) -> None:
    instance.call("POST", "/login", {"username": "doomed", "password": PASSWORD}, ok=False)


def after_login(instance: Instance) -> None:
    instance.call("POST", "/login", {"username": "doomed", "password": PASSWORD}, ok=True)


def after_logout(instance: Instance) -> None:
    occasion = Occasion("after_logout", SESSION, CLIENT, object={"objectId": "x"})
    in_thread(lambda: triggers.run_after_commit(occasion))


def before_password_reset(instance: Instance) -> None:
    def run() -> None:
        with pytest.raises(ServiceError):
            triggers.run(Occasion("before_password_reset", USER, CLIENT, object={"objectId": "x"}))

    in_thread(run)


def background_trigger(instance: Instance) -> None:
    instance.code.place = "after_save"
    caller = {"authority": MASTER.authority.value, "roles": []}

    def run() -> None:
        with pytest.raises(ServiceError):
            run_trigger("after_save", "Thing", "Thing", caller, {"n": 1}, None, {})

    in_thread(run)


def before_connect(instance: Instance) -> None:
    client = instance.realtime.connect(**KEYS)
    assert client.next()["op"] == "error"
    client.close()


def before_subscribe(instance: Instance) -> None:
    assert instance.subscriber.ask(2, "Thing")["op"] == "error"


def after_event(instance: Instance) -> None:
    instance.call("PUT", f"/classes/Thing/{instance.object_id}", {"n": 3}, ok=True)
    assert instance.subscriber.next()["op"] == "error"


def run_job(instance: Instance) -> Any:
    status_id = records.add("doomed", {}, source="api", exclusive=False)
    assert status_id is not None
    instance.code.place = "job"
    in_thread(lambda: execute(status_id))
    return JobStatus._default_manager.get(object_id=status_id)


def job(instance: Instance) -> None:
    run = run_job(instance)
    assert run.status == "failed"
    assert 0 < len(run.error) <= 10_000


def command(instance: Instance) -> None:
    instance.code.place = "validator"

    def run() -> None:
        with pytest.raises(CommandError):
            call_command("run_job", "checked_job", "--param", 'checked={"value": 1}')

    in_thread(run)


def sign_in_adapter(instance: Instance) -> None:
    instance.code.place = "sign-in adapter"
    body = {"authData": {"door": {"key": "x"}}}
    instance.call("POST", "/users", body, ok=False)


class Courier:
    """A push adapter of the deployment."""

    def __init__(self, act: Act) -> None:
        self.act = act

    async def send(self, messages: Sequence[Message]) -> list[Outcome]:
        self.act(None)
        return [SENT] * len(messages)

    async def close(self) -> None:
        self.act(None)


def send(adapter: Courier) -> list[Outcome]:
    """What becomes of a notification."""
    target = PushTarget(device_type="android", push_type="android", attempts=1)

    def run() -> list[Outcome]:
        with adapters(log=adapter), closing(Sender("log")) as sender:  # type: ignore[arg-type]
            return sender.send("push", PushRequest({}, {"data": {"alert": "Hello"}}), [target])

    return in_thread(run)


def push_adapter(instance: Instance) -> None:
    assert send(Courier(instance.code.action)) == [INTERNAL_ERROR]


PLACES = (
    *(function, validator, on_commit, job, command, sign_in_adapter, push_adapter),
    *(before_save, after_save, before_delete, after_delete, before_find, after_find),
    *(before_login, after_login, after_logout, before_password_reset, background_trigger),
    *(before_connect, before_subscribe, after_event),
)
