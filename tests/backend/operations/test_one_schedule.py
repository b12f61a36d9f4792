"""However many processes are started for the schedule, one keeps it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from backend.tasks.schedule_lock import ScheduleLock
from tests.other_process import ROOT, database_url
from tests.polling import until

PATIENCE = 60.0
KEEPS, WAITS = "this process runs the schedule", "waiting for the lock of the schedule"


class Beat:
    """A running ``backend.serve beat``, and what it has logged."""

    def __init__(self, log: Path) -> None:
        self._log = log
        with log.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "backend.serve", "beat"],
                cwd=ROOT,
                env={
                    **os.environ,
                    "DATABASE_URL": database_url(),
                    "PROCESS": "beat",
                    "LOG_LEVEL": "INFO",
                },
                stdout=out,
                stderr=out,
            )

    def wait_for(self, text: str) -> None:
        until(lambda: text in self._log.read_text(), PATIENCE)

    def said(self) -> str:
        return self._log.read_text()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Beat]]:
    started: list[Beat] = []

    def start(name: str) -> Beat:
        started.append(Beat(tmp_path / name))
        return started[-1]

    yield start
    for beat in started:
        beat.process.kill()
        beat.process.wait()


@pytest.mark.django_db
@pytest.mark.slow
def test_a_second_beat_waits_until_the_first_has_ended(start: Callable[[str], Beat]) -> None:
    first = start("first")
    first.wait_for(KEEPS)
    second = start("second")
    second.wait_for(WAITS)
    first.process.kill()
    second.wait_for(KEEPS)


@pytest.mark.django_db
@pytest.mark.slow
def test_a_beat_that_has_lost_the_lock_takes_it_again(start: Callable[[str], Beat]) -> None:
    beat = start("only")
    beat.wait_for(KEEPS)
    with psycopg.connect(database_url(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND objid::bigint = 7316504811 & 4294967295"
        )
    beat.wait_for("the lock of the schedule is lost")
    until(lambda: beat.said().count(KEEPS) == 2, PATIENCE)
    beat.process.terminate()
    assert beat.process.wait(PATIENCE) == 0


@pytest.mark.django_db
@pytest.mark.slow
def test_a_waiting_beat_ends_at_sigterm(start: Callable[[str], Beat]) -> None:
    lock = ScheduleLock()
    lock.wait()
    try:
        beat = start("waiting")
        beat.wait_for(WAITS)
        beat.process.terminate()
        assert beat.process.wait(PATIENCE) == 0
    finally:
        lock.release()
