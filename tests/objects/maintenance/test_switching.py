"""``manage.py maintenance``: what operators type and read, and when ``on`` returns."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import connections, transaction

from backend.kernel.errors import UnderMaintenance
from backend.kernel.principal import MASTER as ITSELF
from objects import service
from objects.database import maintenance
from objects.database.statements import fetch
from tests.backend.commands.conftest import run
from tests.rest import CLIENT, MASTER, Api

PATIENCE = 30  # seconds


def status() -> Any:
    return json.loads(run("maintenance", "status", "--json").out)


# -- What is said ---------------------------------------------------------------------------------


@pytest.mark.django_db
def test_status_says_what_holds():
    assert run("maintenance", "status").out == "Maintenance mode is off.\n"
    assert status() == {"on": False}
    output = run("maintenance", "on", "--message", "Back at 18:00.", "--pause-chain").out
    assert output == run("maintenance", "status").out
    figures = status()
    assert figures.pop("since").endswith("Z")
    assert figures == {"on": True, "message": "Back at 18:00.", "chainPaused": True}
    assert output.splitlines()[1:] == [
        "Writes are refused with: Back at 18:00.",
        "Recording what happens on chain is paused.",
    ]


@pytest.mark.django_db
def test_on_twice_changes_what_is_named_and_leaves_the_rest():
    run("maintenance", "on", "--message", "Back at 18:00.")
    first = status()
    run("maintenance", "on", "--pause-chain")
    assert status() == {**first, "chainPaused": True}
    run("maintenance", "on", "--message", "Back at 19:00.")
    assert status() == {**first, "chainPaused": True, "message": "Back at 19:00."}
    run("maintenance", "on", "--no-pause-chain", "--message", "")
    assert status() == {**first, "message": maintenance.DEFAULT_MESSAGE}


@pytest.mark.django_db
def test_off_twice_is_no_error():
    run("maintenance", "on")
    assert run("maintenance", "off").out == "Maintenance mode is off.\n"
    assert run("maintenance", "off").out == "Maintenance mode is off. It was off before.\n"
    assert status() == {"on": False}


@pytest.mark.django_db
@pytest.mark.parametrize("message", ["a\nb", "a\x00b", "x" * 501])
def test_a_message_that_can_t_be_shown_is_refused(message):
    with pytest.raises(CommandError, match="--message: the message is one line of at most 500"):
        run("maintenance", "on", "--message", message)
    assert status() == {"on": False}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "arguments", [[], ["pause"], ["on", "--timeout", "soon"], ["on", "--timeout", "-1"]]
)
def test_what_the_command_doesn_t_know_is_refused(arguments):
    with pytest.raises(CommandError):
        run("maintenance", *arguments)
    assert status() == {"on": False}


@pytest.mark.django_db(transaction=True)
def test_it_is_not_switched_inside_a_transaction():
    with transaction.atomic(), pytest.raises(RuntimeError):
        maintenance.on()
    with transaction.atomic(), pytest.raises(RuntimeError):
        maintenance.off()


# -- When it returns ------------------------------------------------------------------------------


class Elsewhere:
    """A transaction on a connection of its own, step by step."""

    def __init__(self) -> None:
        self._go_on, self._is_there = threading.Event(), threading.Event()
        self.pid = 0
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def earlier(self) -> None:
        """What the connection has done before the transaction."""

    def before(self) -> None:
        """What it does before the test goes on."""

    def after(self) -> None:
        """What it does before it ends."""

    def _run(self) -> None:
        try:
            self.earlier()
            with transaction.atomic():
                self.pid = int(fetch("SELECT pg_backend_pid()", (), prepare=False)[0][0])
                self.before()
                self._is_there.set()
                assert self._go_on.wait(PATIENCE)
                self.after()
        except BaseException as error:
            self.error = error
        finally:
            self._is_there.set()
            connections.close_all()

    def __enter__(self) -> Elsewhere:
        self._thread.start()
        assert self._is_there.wait(PATIENCE)
        assert self.error is None
        return self

    def let_go(self) -> None:
        self._go_on.set()

    def finish(self) -> None:
        self.let_go()
        self._thread.join(PATIENCE)

    def __exit__(self, *_: object) -> None:
        self.finish()


class Writing(Elsewhere):
    def before(self) -> None:
        service.create(ITSELF, "Game", {"score": 2})


class Reading(Elsewhere):
    def before(self) -> None:
        Api(CLIENT).results("Game")
        # As a dump does it, for as long as it runs.
        fetch("LOCK TABLE objects_maintenance IN ACCESS SHARE MODE", (), prepare=False)


@pytest.fixture
def game(transactional_db) -> Iterator[str]:
    yield Api(MASTER).make("Game", score=1)
    maintenance.off()


def scores() -> list[int]:
    return sorted(result["score"] for result in Api(MASTER).results("Game"))


@contextmanager
def switching_on(**options: Any) -> Iterator[threading.Thread]:
    """``maintenance.on`` in a thread, when it has set the switch and waits."""

    def switch() -> None:
        try:
            maintenance.on(**options)
        finally:
            connections.close_all()

    thread = threading.Thread(target=switch, daemon=True)
    thread.start()
    wait_until(lambda: maintenance.state() is not None)
    try:
        yield thread
    finally:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def wait_until(holds: Any) -> None:
    for _ in range(PATIENCE * 100):
        if holds():
            return
        fetch("SELECT pg_sleep(0.01)", (), prepare=False)
    raise AssertionError("It never came to that.")


def test_on_waits_for_a_write_that_began_before(game):
    with Writing() as writing, switching_on() as switch:
        assert switch.is_alive()
        assert Api(MASTER).post("/classes/Game", {"score": 3}).error == (400, 119)
        writing.finish()
        switch.join(PATIENCE)
        assert scores() == [1, 2]


def test_a_transaction_that_goes_on_writing_afterwards_is_undone_as_a_whole(game):
    class WritingTwice(Writing):
        def after(self) -> None:
            service.create(ITSELF, "Game", {"score": 3})

    with WritingTwice() as writing, switching_on():
        writing.finish()
        assert isinstance(writing.error, UnderMaintenance)
    assert scores() == [1]


def test_writes_that_take_too_long_are_named_and_maintenance_stays_on(game):
    with Writing() as writing:
        with pytest.raises(CommandError, match="Maintenance mode is on") as raised:
            run("maintenance", "on", "--timeout", "0.05")
        assert raised.value.returncode == 1
        assert f"pid {writing.pid} (backend test, for " in str(raised.value)
        assert f"SELECT pg_terminate_backend({writing.pid})" in str(raised.value)
        assert status()["on"]
        assert Api(MASTER).post("/classes/Game", {"score": 3}).error == (400, 119)
    run("maintenance", "on", "--timeout", "0")
    assert scores() == [1, 2]


def test_on_doesn_t_wait_for_those_who_read_or_dump_the_database(game):
    with Reading():
        run("maintenance", "on", "--timeout", "0")


def test_switched_off_while_on_still_waits(game):
    with Writing() as writing:
        thread_sees: list[object] = []

        def switch() -> None:
            try:
                thread_sees.append(maintenance.on())
            finally:
                connections.close_all()

        thread = threading.Thread(target=switch, daemon=True)
        thread.start()
        wait_until(lambda: maintenance.state() is not None)
        maintenance.off()
        writing.finish()
        thread.join(PATIENCE)
    assert thread_sees == [None]


@pytest.mark.parametrize("prepared", [False, True])
def test_a_statement_that_was_sent_before_and_runs_after_sees_the_switch(game, prepared):
    """PostgreSQL takes the snapshot of a statement after its locks; all rests on that."""

    class Sending(Elsewhere):
        def earlier(self) -> None:
            if prepared:
                service.create(ITSELF, "Game", {"score": 2})

        def after(self) -> None:
            service.create(ITSELF, "Game", {"score": 2})

    def waits() -> list[Any]:
        return fetch(
            "SELECT FROM pg_locks WHERE NOT granted AND pid = %s"
            " AND relation = 'objects_read_only'::regclass",
            (sending.pid,),
            prepare=False,
        )

    with Sending() as sending:
        with transaction.atomic():
            fetch(LOCK, (), prepare=False)
            sending.let_go()
            wait_until(waits)
            fetch(SWITCH, (), prepare=False)
        sending.finish()
        assert str(sending.error) == "Later."
    assert scores() == ([1, 2] if prepared else [1])


LOCK = "LOCK TABLE objects_read_only IN ACCESS EXCLUSIVE MODE"
SWITCH = "INSERT INTO objects_maintenance VALUES (1, 'Later.', now(), false)"
