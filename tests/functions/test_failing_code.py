"""No matter what code of a deployment raises, returns or logs, its caller gets an answer, a line is
logged, and the thread, the worker or the socket goes on."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from backend.kernel.errors import ScriptFailed, ServiceError
from backend.kernel.principal import CLIENT, MASTER
from backend.logs import lines, setup
from functions.jobs import records
from functions.jobs.models import JobStatus
from functions.jobs.runs import execute
from functions.triggers.tasks import run_trigger
from objects import triggers
from objects.core.names import SESSION, USER
from objects.push.adapters.base import INTERNAL_ERROR, SENT, Message, Outcome, failed
from objects.push.delivery import Senders
from objects.push.models import PushTarget
from objects.push.requests import PushRequest
from objects.triggers import Occasion
from tests.backend.server.running import Running, running
from tests.functions.failing_code import ERRORS, HALF, VALUES, Code, registered
from tests.objects.push.recorder import adapters
from tests.rest import CLIENT as CLIENT_KEYS
from tests.rest import MASTER as MASTER_KEYS
from tests.subscribers import KEYS, Realtime, Subscriber, realtime_process
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


@pytest.fixture(scope="module")
def instance(
    emptied: None, django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any
) -> Iterator[Instance]:
    from backend.wsgi import application

    folder: Path = tmp_path_factory.mktemp("spool")
    with (
        django_db_blocker.unblock(),
        registered() as code,
        running(folder, application=application, end_thread=connections.close_all) as web,
        realtime_process() as realtime,
    ):
        yield Instance(web, realtime, code)


@pytest.fixture(autouse=True)
def db(instance: Instance) -> None:
    """In place of a transaction for each test: the threads have to see what is stored."""


@pytest.fixture(autouse=True)
def lines_as_json(instance: Instance) -> Iterator[None]:
    setup.configure("INFO", "json", "test")
    yield
    setup.configure("WARNING", "json", "test")


def logged(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The lines that were written, all of which are JSON in UTF-8."""
    lines.write(b'{"event":"after those that wait"}')
    return [json.loads(line) for line in capfd.readouterr().err.splitlines()][:-1]


# -- Places ---------------------------------------------------------------------------------------


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
        with adapters(log=adapter), closing(Senders()) as senders:  # type: ignore[arg-type]
            return senders.send("push", PushRequest({}, {"data": {"alert": "Hello"}}), [target])

    return in_thread(run)


def push_adapter(instance: Instance) -> None:
    assert send(Courier(instance.code.action)) == [INTERNAL_ERROR]


PLACES = (
    *(function, validator, on_commit, job, command, sign_in_adapter, push_adapter),
    *(before_save, after_save, before_delete, after_delete, before_find, after_find),
    *(before_login, after_login, after_logout, before_password_reset, background_trigger),
    *(before_connect, before_subscribe, after_event),
)


@pytest.fixture
def door(settings: Any) -> None:
    adapter = {"adapter": "tests.functions.failing_code.Doorkeeper"}
    settings.SERVICE = {**settings.SERVICE, "AUTH_ADAPTERS": {"door": adapter}}


@contextmanager
def noted(case: str) -> Iterator[None]:
    """Name the case of a table in the errors of the block."""
    try:
        yield
    except Exception as error:
        error.add_note(f"case: {case}")
        raise


@pytest.mark.usefixtures("door")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_an_error_is_answered_and_logged(
    instance: Instance, place: Callable[[Instance], None], capfd: Any
) -> None:
    for case, make in ERRORS.items():

        def act(request: Any, make: Callable[[], BaseException] = make) -> object:
            raise make()

        logged(capfd)
        with noted(case), instance.code.armed(place.__name__, act):
            place(instance)
            # A refusal is no failure: its line is that of the request, where there is one.
            assert logged(capfd) or isinstance(make(), ServiceError)


@pytest.mark.parametrize("place", [function, job], ids=lambda place: place.__name__)
@pytest.mark.parametrize("make", [RuntimeError, ScriptFailed])
def test_a_message_of_50_mb_is_cut(
    instance: Instance,
    place: Callable[[Instance], None],
    make: Callable[[str], Exception],
    capfd: Any,
) -> None:
    def act(request: Any) -> object:
        raise make("x" * 50_000_000)

    logged(capfd)
    with instance.code.armed(place.__name__, act):
        place(instance)
    assert sum(len(str(line)) for line in logged(capfd)) < 1_000_000


@pytest.mark.usefixtures("door")
def test_threads_and_sockets_go_on(instance: Instance) -> None:
    before = {thread.ident for thread in threading.enumerate() if thread.name.startswith("request")}
    assert before
    for make in ERRORS.values():

        def act(request: Any, make: Callable[[], BaseException] = make) -> object:
            raise make()

        for place in (function, before_find, sign_in_adapter, after_event, before_subscribe):
            with instance.code.armed(place.__name__, act):
                place(instance)
    instance.goes_on()
    assert before <= {thread.ident for thread in threading.enumerate()}


# -- Results and log lines ------------------------------------------------------------------------


@pytest.mark.parametrize("value", VALUES)
def test_a_result_is_sent_or_refused(instance: Instance, value: str) -> None:
    with instance.code.armed("function", lambda request: VALUES[value]()):
        answer = instance.call("POST", "/functions/plain", {})
    assert set(answer) in ({"result"}, {"code", "error"})
    if "code" in answer:
        assert answer["code"] in (107, 141)
    instance.goes_on()


def test_a_code_of_an_enumeration_is_sent(instance: Instance) -> None:
    def act(request: Any) -> object:
        raise ERRORS["a code of an enumeration"]()

    with instance.code.armed("function", act):
        assert instance.call("POST", "/functions/plain", {}, ok=False)["code"] == 4711


def test_half_of_a_surrogate_pair_is_sent_as_u_fffd(instance: Instance) -> None:
    with instance.code.armed("function", lambda request: {HALF: [HALF, "\ud83d\ude00"]}):
        answer = instance.call("POST", "/functions/plain", {}, ok=True)
    assert answer == {"result": {"bad \ufffd text": ["bad \ufffd text", "😀"]}}


@pytest.mark.parametrize("value", VALUES)
def test_a_result_of_a_job_ends_it(instance: Instance, value: str) -> None:
    instance.code.action = lambda request: VALUES[value]()
    try:
        assert run_job(instance).status in ("succeeded", "failed")
    finally:
        instance.code.place = ""


@pytest.mark.parametrize("value", VALUES)
def test_what_a_trigger_puts_into_an_object_is_sent_or_refused(
    instance: Instance, value: str
) -> None:
    def of_save(request: Any) -> None:
        request.object["odd"] = VALUES[value]()

    def of_search(request: Any) -> None:
        for result in request.results:
            result["odd"] = VALUES[value]()

    with instance.code.armed("before_save", of_save):
        answer = instance.call("POST", "/classes/Thing", {"n": 1})
    if "objectId" in answer:
        assert instance.subscriber.next()["op"] == "create"
    with instance.code.armed("after_find", of_search):
        answer = instance.call("GET", "/classes/Thing?limit=1")
    assert answer.get("results") or answer["code"] in (107, 141)
    with instance.code.armed("after_event", of_save):
        instance.call("PUT", f"/classes/Thing/{instance.object_id}", {"n": 4}, ok=True)
        assert instance.subscriber.next()["op"] in ("update", "error")
    instance.goes_on()


@pytest.mark.parametrize("value", VALUES)
def test_any_value_is_logged(instance: Instance, value: str, capfd: Any) -> None:
    def act(request: Any) -> str:
        for level in ("debug", "info", "warning", "error", "exception"):
            getattr(request.log, level)("event", value=VALUES[value](), other=1)
        request.log.info(VALUES[value]())
        request.log.info("%s %s", VALUES[value]())
        request.log.info(VALUES[value](), event="twice")
        request.log.info("password", password=VALUES[value](), **{HALF: 1})
        return "logged"

    logged(capfd)
    with instance.code.armed("function", act):
        assert instance.call("POST", "/functions/plain", {}, ok=True) == {"result": "logged"}
    events = [line for line in logged(capfd) if line.get("event") == "event"]
    assert [line["level"] for line in events] == ["info", "warning", "error", "error"]
    assert all(line["other"] == 1 and "value" in line for line in events)


def test_the_standard_library_s_log_takes_any_value(capfd: Any) -> None:
    (handler,) = [h for h in logging.getLogger().handlers if isinstance(h, setup.LineHandler)]
    texts = ("value %s of %s", "value %s", "%s %s %s")
    logged(capfd)
    for make in VALUES.values():
        for text in texts:
            for name in ("deployment", "celery.app.trace"):
                record = logging.LogRecord(name, logging.INFO, "", 0, text, (make(), "x"), None)
                assert handler.handle(record)
    assert len(logged(capfd)) == len(VALUES) * len(texts) * 2


def test_the_outcome_of_a_push_adapter_can_be_stored() -> None:
    class Odd(Courier):
        async def send(self, messages: Sequence[Message]) -> list[Outcome]:
            return [failed("\0" + HALF) for _ in messages]

    assert send(Odd(lambda request: None)) == [failed("\ufffdbad \ufffd text")]
