"""What a function may use: time and memory."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections

from functions import Request, function
from functions.runtime import deadlines
from functions.runtime.deadlines import TimeIsUp, time_limit
from tests.rest import MASTER, Api


def waits_for_the_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(60)")


def spins() -> None:
    while True:
        pass


def test_a_function_that_never_ends_is_stopped(client: Api) -> None:
    @function(time_limit=0.2)
    def forever(request: Request) -> None:
        while True:
            pass

    reply = client.post("/functions/forever")
    assert (reply.error, reply.json["error"]) == (
        (400, 124),
        "The function forever took longer than 0.2 seconds.",
    )


def test_a_function_that_catches_everything_is_stopped_as_well(client: Api) -> None:
    @function(time_limit=0.2)
    def stubborn(request: Request) -> None:
        while True:
            try:
                while True:
                    pass
            except Exception:
                continue

    assert client.post("/functions/stubborn").error == (400, 124)


@pytest.mark.django_db(transaction=True)
def test_a_function_that_waits_for_the_database_is_stopped(emptied: None) -> None:
    master = Api(MASTER)

    @function(time_limit=0.3)
    def waits(request: Request) -> None:
        waits_for_the_database()

    begin = time.monotonic()
    assert master.post("/functions/waits").error == (400, 124)
    assert time.monotonic() - begin < 20
    assert master.post("/classes/Note", {"a": 1}).status == 201


@pytest.mark.django_db(transaction=True)
def test_it_need_not_have_been_connected_when_it_began() -> None:
    connection.close()
    begin = time.monotonic()
    with pytest.raises(TimeIsUp), time_limit(0.3, connections[DEFAULT_DB_ALIAS]):
        waits_for_the_database()
    assert time.monotonic() - begin < 20


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_statement_that_begins_after_the_limit_is_cancelled_as_well() -> None:
    begin = time.monotonic()
    with time_limit(0.2, connections[DEFAULT_DB_ALIAS]):
        with pytest.raises(TimeIsUp):
            spins()
        with pytest.raises(OperationalError, match="canceling statement due to user request"):
            waits_for_the_database()
    assert time.monotonic() - begin < 20
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(1.5)")


@pytest.mark.django_db(transaction=True)
def test_what_a_stopped_transaction_has_written_is_undone(emptied: None) -> None:
    master = Api(MASTER)
    master.make("Note", text="first")

    @function(transaction=True, time_limit=0.3)
    def half(request: Request) -> None:
        request.objects("Note").create(text="half")
        while True:
            pass

    assert master.post("/functions/half").error == (400, 124)
    assert [result["text"] for result in master.results("Note")] == ["first"]


def test_the_setting_is_the_limit_where_a_function_has_none(client: Api, settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "FUNCTION_TIME_LIMIT": 0.2}

    @function()
    def forever(request: Request) -> None:
        while True:
            pass

    assert client.post("/functions/forever").error == (400, 124)


def test_the_limit_of_the_outermost_call_holds_for_what_it_calls(client: Api) -> None:
    @function(time_limit=60)
    def inner(request: Request) -> None:
        while True:
            pass

    @function(time_limit=0.2)
    def outer(request: Request) -> Any:
        return request.call("inner")

    reply = client.post("/functions/outer")
    assert reply.json["error"] == "The function outer took longer than 0.2 seconds."


def test_a_limit_that_is_not_reached_leaves_nothing_behind() -> None:
    for _ in range(2000):
        # Long enough that it isn't reached where the machine is busy with other things.
        with time_limit(0.5):
            pass
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        pass


def test_many_threads_are_stopped_each_by_its_own_limit() -> None:
    stopped: list[float] = []

    def work(seconds: float) -> None:
        begin = time.monotonic()
        try:
            with time_limit(seconds):
                while True:
                    pass
        except TimeIsUp:
            stopped.append(time.monotonic() - begin - seconds)

    threads = [threading.Thread(target=work, args=(0.05 * n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(stopped) == 6
    assert all(late >= 0 for late in stopped)


def compute_for(seconds: float) -> None:
    """In a function of its own: Python 3.13 passes handlers by that are in one with such a loop
    (https://github.com/python/cpython/issues/130279)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_a_limit_that_passes_at_the_very_end_hits_nothing_else() -> None:
    """The deadline and the end of the body meet, many times over, at slightly different moments."""
    for step in range(300):
        with contextlib.suppress(TimeIsUp), time_limit(0.001):
            compute_for(0.0008 + step % 7 * 0.0001)
        total = 0
        for number in range(200):
            total += number
        assert total == 19900


class NotConnected:
    connection = None


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns as often as can be."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("hasty_threads")
def test_a_limit_that_passes_at_once_is_over_afterwards() -> None:
    """Otherwise statements of later requests in this thread would be cancelled."""
    for step in range(20_000):
        with contextlib.suppress(TimeIsUp), time_limit(step % 50 * 1e-6 + 1e-9, NotConnected()):
            compute_for(step % 40 * 1e-6)
    assert [item for _, _, item in list(deadlines._watch.waiting) if not item.is_over] == []


def test_a_short_limit_is_kept_while_a_long_one_is_waited_for() -> None:
    begin = time.monotonic()
    with time_limit(60):
        stopped: list[float] = []

        def spin() -> None:
            with contextlib.suppress(TimeIsUp), time_limit(0.2):
                spins()
            stopped.append(time.monotonic() - begin)

        thread = threading.Thread(target=spin)
        thread.start()
        thread.join(20)
    assert stopped
    assert stopped[0] < 10


def test_limits_that_were_not_reached_are_dropped_before_they_pass() -> None:
    for _ in range(1000):
        with time_limit(60):
            pass
    assert len(deadlines._watch.waiting) < 100


def test_limits_hold_in_a_forked_process() -> None:
    """The parent's watching thread, which waits for a later deadline, isn't there any more."""
    with time_limit(60):
        child = os.fork()
    if child == 0:
        try:
            with time_limit(90):
                pass
            with time_limit(0.1):
                until = time.monotonic() + 10
                while time.monotonic() < until:
                    pass
        except TimeIsUp:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
