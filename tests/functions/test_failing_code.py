"""No matter what code of a deployment raises, returns or logs, its caller gets an answer, a line is
logged, and the thread, the worker or the socket goes on."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.test import RequestFactory

from backend.http.exceptions import error_response
from backend.kernel.errors import ScriptFailed, ServiceError
from backend.logs import lines, setup
from backend.logs.failures import contained
from objects.push.adapters.base import Message, Outcome, failed
from tests.backend.server.running import running
from tests.functions import failing_places as places
from tests.functions.failing_code import (
    ERRORS,
    HALF,
    VALUES,
    NamelessError,
    UnreadableError,
    registered,
)
from tests.functions.failing_places import PLACES, Courier, Instance
from tests.subscribers import realtime_process


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


@pytest.mark.parametrize("place", [places.function, places.job], ids=lambda place: place.__name__)
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

        for place in (
            *(places.function, places.before_find, places.sign_in_adapter),
            *(places.after_event, places.before_subscribe),
        ):
            with instance.code.armed(place.__name__, act):
                place(instance)
    instance.goes_on()
    assert before <= {thread.ident for thread in threading.enumerate()}


@pytest.mark.parametrize(
    "setting", ["search_path TO nowhere", "default_transaction_read_only TO on"]
)
def test_a_setting_that_code_leaves_on_its_connection_is_gone_after_one_error(
    instance: Instance, setting: str
) -> None:
    def act(request: Any) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute(f"SET {setting}")

    with instance.code.armed("function", act):
        # More requests than there are threads, so that each has one such connection.
        for _ in range(8):
            instance.call("POST", "/functions/plain", {})
    # Of a class without subscribers.
    answers = [instance.call("POST", "/classes/Quiet", {"n": 1}, master=True) for _ in range(8)]
    assert all("objectId" in answer for answer in answers[-3:])
    instance.goes_on()


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
        assert places.run_job(instance).status in ("succeeded", "failed")
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

    assert places.send(Odd(lambda request: None)) == [failed("\ufffdbad \ufffd text")]


@pytest.mark.parametrize("error", [NamelessError, UnreadableError])
def test_an_error_whose_attributes_raise_is_an_error_as_any_other(
    error: type[BaseException], rf: RequestFactory
) -> None:
    """Apart from the table: the test runner can't show these errors."""

    def body() -> None:
        raise error

    with pytest.raises(ScriptFailed, match="The function pay failed"):
        contained("function pay", body)
    assert error_response(error(), rf.get("/")).status_code == 500
