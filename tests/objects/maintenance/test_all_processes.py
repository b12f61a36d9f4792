"""Two web processes and a worker write without a pause while maintenance mode is switched on.

When the command has returned, nothing is written any more by anybody; what was accepted before is
there, and what was refused is not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.conf import settings

from objects.database.statements import fetch
from tests.backend.commands.conftest import run
from tests.objects.maintenance.database_snapshot import everything_stored
from tests.objects.maintenance.load_task import DONE, STOP, write_without_pause
from tests.objects.maintenance.writers import (
    PATIENCE,
    BatchOfFive,
    Counting,
    Creator,
    Growing,
    Uploader,
    Writer,
)
from tests.other_process import ROOT, OtherProcess, database_url, other_process
from tests.rest import MASTER, Api

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process, pytest.mark.slow]

_ENOUGH = 5


@pytest.fixture(scope="module")
def second(other: OtherProcess) -> Iterator[OtherProcess]:
    with other_process() as process:
        yield process


@pytest.fixture(scope="module")
def environment(other: OtherProcess) -> dict[str, str]:
    """For further processes on the test's database."""
    return {**os.environ, "DATABASE_URL": database_url(), "LOG_LEVEL": "ERROR"}


@pytest.fixture(scope="module")
def worker(environment: dict[str, str]) -> Iterator[redis.Redis]:
    """A Celery worker that knows the task of this test; where the task says what it does."""
    # The library's own limit of 5 s would end a BLPOP while the worker still starts.
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=None) as store:
        store.flushdb()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "celery", "--quiet", "-A", "backend.celery", "worker"),
                *("--pool=solo", "--without-gossip", "--without-mingle"),
                "--include=tests.objects.maintenance.load_task",
            ],
            cwd=ROOT,
            env={**environment, "PROCESS": "worker"},
        )
        try:
            yield store
        finally:
            process.terminate()
            process.wait(PATIENCE)
            store.flushdb()


class WorkerLog:
    """What the task in the worker has said so far."""

    def __init__(self, store: redis.Redis) -> None:
        self._store = store
        self.answers: list[tuple[int, bool]] = []

    def read(self) -> None:
        """Take note of what is there."""
        while line := self._store.lpop(DONE):
            self.answers.append(tuple(json.loads(line)))

    def wait_for(self, number: int, accepted: bool) -> None:
        while number > 0:
            item = self._store.blpop([DONE], timeout=PATIENCE)
            assert item, self.answers[-3:]
            self.answers.append(tuple(json.loads(item[1])))
            number -= self.answers[-1][1] is accepted

    def numbers(self, accepted: bool) -> list[int]:
        return [n for n, item in self.answers if item is accepted]


@pytest.fixture
def working(worker: redis.Redis) -> Iterator[WorkerLog]:
    """The task, writing to the class Load."""
    worker.delete(DONE, STOP)
    write_without_pause.delay("Load")
    log = WorkerLog(worker)
    yield log
    worker.set(STOP, 1)


@pytest.fixture
def counter(transactional_db: None) -> str:
    Api(MASTER).post("/schemas/Load", {"fields": {"n": {"type": "Number"}}})
    return Api(MASTER).make("Counter", steps=0)


@pytest.fixture
def writers(other: OtherProcess, second: OtherProcess, counter: str) -> Iterator[list[Writer]]:
    """Clients of both processes."""
    made: list[Writer] = []
    for process, name in ((other, "first"), (second, "second")):
        port = process.port
        made += [
            Creator(port, f"{name}-creator"),
            BatchOfFive(port, f"{name}-batch", counter),
            Counting(port, f"{name}-counting", counter),
            Uploader(port, f"{name}-uploader"),
            Growing(port, f"{name}-growing"),
        ]
    yield made
    for writer in made:
        writer.stop()


def switch(environment: dict[str, str], *arguments: str) -> str:
    """``manage.py maintenance`` as an operator runs it; what it says."""
    done = subprocess.run(
        [sys.executable, "manage.py", "maintenance", *arguments],
        cwd=ROOT,
        env={**environment, "PROCESS": "manage"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_this_process(*arguments: str) -> str:
    """The same, quicker."""
    return run("maintenance", *arguments).out


def stored(class_name: str) -> Counter[tuple[Any, Any]]:
    """How many objects there are of each writer and number."""
    rows = fetch(f"SELECT id FROM objects_class WHERE name = '{class_name}'", (), prepare=False)
    results = fetch(
        f"SELECT data ->> 'writer', data ->> 'n' FROM objects_object_{rows[0][0]}",
        (),
        prepare=False,
    )
    return Counter((writer, int(n)) for writer, n in results)


def expected(log: Any, name: str, each: int = 1) -> Counter[tuple[Any, Any]]:
    return Counter({(name, n): each for n in log.numbers(True)})


def test_when_the_command_has_returned_no_one_writes_any_more_and_nothing_is_cut_in_half(
    writers: list[Writer], working: WorkerLog, environment: dict[str, str], counter: str
):
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.log.wait_for(_ENOUGH, True)
    working.wait_for(_ENOUGH, True)

    for switched in (lambda *words: switch(environment, *words), in_this_process):
        assert "is on since" in switched("on")
        at_return = everything_stored()
        for writer in writers:
            writer.log.wait_for(_ENOUGH, False)
        working.read()
        working.wait_for(_ENOUGH, False)
        assert everything_stored() == at_return

        in_this_process("off")
        for writer in writers:
            writer.log.wait_for(_ENOUGH, True)
        working.read()
        working.wait_for(_ENOUGH, True)

    in_this_process("on")
    at_return = everything_stored()
    for writer in writers:
        writer.stop()
    for writer in writers:
        writer.join(PATIENCE)
    working.read()
    working.wait_for(1, False)
    assert everything_stored() == at_return

    logs = {writer.name: writer.log for writer in writers}
    strange = [answer for log in logs.values() for answer in log.answers if answer[1] is None]
    assert strange == []
    loaded = expected(working, "worker")
    for process in ("first", "second"):
        loaded += expected(logs[f"{process}-creator"], f"{process}-creator")
        loaded += expected(logs[f"{process}-batch"], f"{process}-batch", each=5)
    assert stored("Load") == loaded
    grown = Counter[tuple[Any, Any]]()
    for process in ("first", "second"):
        grown += expected(logs[f"{process}-growing"], f"{process}-growing")
    assert stored("Growing") == grown
    steps = sum(
        len(log.numbers(True)) for name, log in logs.items() if "batch" in name or "count" in name
    )
    assert Api(MASTER).get(f"/classes/Counter/{counter}").json["steps"] == steps
    names = {
        body["name"]
        for name, log in logs.items()
        if "uploader" in name
        for _, accepted, body in log.answers
        if accepted
    }
    response = {name for (name,) in fetch("SELECT name FROM objects_file", (), prepare=False)}
    assert response == names
