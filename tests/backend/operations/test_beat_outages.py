"""Beat waits for PostgreSQL, Redis and its lock, however long they are away. When it hangs for
another reason, it is replaced."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from backend.celery import expect_no_heartbeats_in
from backend.instance.folder import DataFolder, temporary_folder
from backend.kernel.process import liveness, restart_report
from backend.operations.embedded.engines import Engines
from backend.operations.embedded.postgres import UNSAFE_BUT_FAST
from tests.backend.operations.service import PATIENCE, ROOT, plain_environment, run_manage
from tests.polling import until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("beat_outages")]
KEPT, AWAY = "this process runs the schedule", "the schedule waits for the database"
SILENCE = 6.0  # seconds
KEYS = dict.fromkeys(("APP_ID", "REST_API_KEY", "MASTER_KEY", "SECRET_KEY"), "x" * 20)
LOCK = 7_316_504_811


@pytest.fixture(scope="module")
def data() -> Iterator[tuple[DataFolder, Engines]]:
    """Engines of these tests alone, with the service's tables."""
    with temporary_folder() as folder:
        account = folder.prepare()
        with Engines(folder, account, settings=UNSAFE_BUT_FAST, durable=False) as engines:
            done = run_manage("prepare", **settings(folder))
            assert done.returncode == 0, done.stderr
            yield folder, engines


def settings(folder: DataFolder) -> dict[str, object]:
    urls = {"DATABASE_URL": folder.database_url, "REDIS_URL": folder.redis_url}
    return {"DATA_DIR": folder.path, "LOG_LEVEL": "INFO", **KEYS, **urls}


class Beat:
    """A supervised beat that sends what is due."""

    def __init__(self, data: tuple[DataFolder, Engines], folder: Path) -> None:
        self.data, self.engines = data
        self.folder = folder
        (folder / "reports").mkdir()
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.backend.operations.supervised_beat",
                    folder,
                    str(SILENCE),
                ],
                cwd=ROOT,
                env=plain_environment(**settings(self.data)),
                stderr=log,
            )
        self.wait_until_it_sends()

    def count(self, text: str) -> int:
        return self._log.read_text().count(text)

    def wait_until_it_sends(self) -> None:
        with redis.Redis.from_url(self.data.redis_url) as client:
            client.flushdb()

            def has_sent() -> bool:
                assert self.process.poll() is None, self._log.read_text()
                return any(client.scan_iter("celery:*"))

            until(has_sent, PATIENCE)

    def wait_beyond_silence(self) -> None:
        with pytest.raises(subprocess.TimeoutExpired):
            self.process.wait(2 * SILENCE)

    def ends(self) -> list[str]:
        """What ended it, the last time."""
        return [restarted.last_end for restarted in restart_report.read(self.folder / "reports")]


@pytest.fixture
def beat(data: tuple[DataFolder, Engines], tmp_path: Path) -> Iterator[Beat]:
    beat = Beat(data, tmp_path)
    yield beat
    beat.process.terminate()
    assert beat.process.wait(PATIENCE) == 0


@contextlib.contextmanager
def suspended(pids: set[int]) -> Iterator[None]:
    [root] = map(psutil.Process, pids)
    processes = []
    try:
        root.suspend()
        processes.append(root)
        for process in root.children(recursive=True):
            process.suspend()
            processes.append(process)
        yield
    finally:
        for process in processes:
            process.resume()


@pytest.mark.parametrize("name", ["connect", "is_usable", "_commit", "_rollback"])
def test_no_heartbeat_is_expected_during_a_round_trip_that_is_no_statement(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that stops just before the end of a transaction isn't a schedule that hangs."""
    clock = [100.0]
    own = liveness.Signs(1, now=lambda: clock[0])
    monkeypatch.setattr(liveness, "_own", (own, 0))
    observed: list[float] = []

    class Database:
        def wait(self) -> None:
            clock[0] += 60
            observed.append(own.age(0))

        connect = is_usable = _commit = _rollback = wait

    database = Database()
    expect_no_heartbeats_in(database)
    liveness.leave()
    getattr(database, name)()
    assert observed == [0.0]
    clock[0] += 5
    assert own.age(0) == 5.0


@pytest.mark.parametrize("engine", [0, 1], ids=["PostgreSQL", "Redis"])
def test_an_engine_that_does_not_answer_ends_no_beat(beat: Beat, engine: int) -> None:
    with suspended(beat.engines.programs[engine].pids):
        beat.wait_beyond_silence()
    beat.wait_until_it_sends()
    assert beat.ends() == []


@pytest.mark.parametrize("engine", [0, 1], ids=["PostgreSQL", "Redis"])
def test_an_engine_that_is_away_ends_no_beat(beat: Beat, engine: int) -> None:
    program = beat.engines.programs[engine]
    program.stop()
    beat.wait_beyond_silence()
    program.start()
    beat.wait_until_it_sends()
    assert beat.ends() == []
    # One line for the whole outage.
    assert beat.count(AWAY) == (1 if engine == 0 else 0)


def test_a_lock_that_another_process_has_taken_ends_no_beat(beat: Beat) -> None:
    with psycopg.connect(beat.data.database_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
            f" AND objid::bigint = {LOCK} & 4294967295"
        )
        connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        until(lambda: beat.count("the lock of the schedule is lost"), PATIENCE)
        beat.wait_beyond_silence()
    until(lambda: beat.count(KEPT) == 2, PATIENCE)
    beat.wait_until_it_sends()
    assert beat.ends() == []


def test_a_schedule_that_hangs_is_replaced(beat: Beat) -> None:
    (beat.folder / "hang").touch()
    until(lambda: beat.ends() == ["it hung"], PATIENCE)
    beat.wait_until_it_sends()
    assert beat.count(KEPT) == 2
