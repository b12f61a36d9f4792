"""What happens to a machine, and to the engines on it: the service recovers, and nothing that it
has acknowledged is lost.

``script/test --all tests/backend/operations/test_adversities.py -s`` prints a table of the
section "What was killed, filled and stopped" of docs/performance-running.md.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from backend.instance.folder import DataFolder, temporary_folder
from backend.kernel.process import children
from backend.operations.embedded.engines import Engines
from tests.backend.operations.load_outcomes import NAMES, Start, Table, loaded
from tests.backend.operations.mixed_load import create_note
from tests.backend.operations.service import PATIENCE, Service, services
from tests.backend.operations.stalls import stalled
from tests.polling import until

pytestmark = pytest.mark.slow

DURATION = 8.0
"""Seconds for which an engine answers nothing, or a disk stays full."""
REQUESTS = 4
"""Requests that begin while an engine answers nothing."""


def test_redis_is_emptied(start: Start, folder: DataFolder, tmp_path: Path, table: Table) -> None:
    with loaded(start, tmp_path) as load:
        load.answers.clear()
        with redis.Redis(unix_socket_path=str(folder.redis_socket)) as client:
            client.flushall()
        table.add("Redis is emptied", load, load.seconds_to_recover())
        assert {*load.answers} <= {200, 201}, load.bodies


def test_postgres_is_restarted(start: Start, tmp_path: Path, table: Table) -> None:
    with loaded(start, tmp_path) as load:
        process = load.service.child("/postgres")
        load.answers.clear()
        process.send_signal(signal.SIGINT)
        until(lambda: load.service.child_or_none("/postgres", but=process), PATIENCE)
        table.add("PostgreSQL is restarted", load, load.seconds_to_recover())
        assert {*load.answers} <= {200, 201, 503}, load.bodies


@pytest.mark.parametrize("engine", ["redis-server", "/postgres"])
def test_an_engine_stalls(start: Start, tmp_path: Path, table: Table, engine: str) -> None:
    with loaded(start, tmp_path) as load:
        with ThreadPoolExecutor(REQUESTS) as pool, stalled(load.service, engine):
            load.answers.clear()
            began = time.monotonic()
            requests = [pool.submit(create_note, load.service) for _ in range(REQUESTS)]
            until(lambda: time.monotonic() - began > DURATION, PATIENCE)
            answered = [request for request in requests if request.done()]
            # Whether these requests were made during the stall: without PostgreSQL none can be
            # stored, and without Redis each is.
            statuses = [request.result().status_code for request in answered]
            assert 201 not in statuses if engine == "/postgres" else statuses == [201] * REQUESTS
        assert {request.result().status_code for request in requests} <= {201, 503}
        what = f"{NAMES[engine]} answers nothing for {DURATION:.0f} s"
        table.add(what, load, load.seconds_to_recover())
        assert {*load.answers} <= {200, 201, 503}, load.bodies


@pytest.fixture
def small_disk(folder: DataFolder) -> Iterator[DataFolder]:
    """The data folder on a disk of its own, of 400 MB.

    Unmounting fails while a process has a file of it open: request ``start_on_small_disk``.
    """
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    command = ["mount", "-t", "tmpfs", "-o", "size=400m,mode=711", "tmpfs", str(folder.path)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets root mount nothing, as in a container")
    yield folder
    subprocess.run(["umount", str(folder.path)], check=True)


@pytest.fixture
def start_on_small_disk(small_disk: DataFolder) -> Iterator[Start]:
    """As ``start``: the service is stopped before the disk is unmounted."""
    with services(small_disk) as start:
        yield start


def test_the_disk_is_full(
    start_on_small_disk: Start, small_disk: DataFolder, tmp_path: Path, table: Table
) -> None:
    with loaded(start_on_small_disk, tmp_path) as load:
        load.answers.clear()
        filler = small_disk.path / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"\0" * 2**20):
                pass
        until(lambda: load.answers[503] + load.answers[500] > 50, PATIENCE)
        time.sleep(DURATION)  # the disk stays full
        filler.unlink()
        table.add("the disk is full", load, load.seconds_to_recover())
        assert {*load.answers} <= {200, 201, 503}, load.bodies


class WallClock:
    """A clock that may be set at any time, for processes that are started with ``environment``.

    ``folder`` has to be one that the processes' accounts can reach.
    """

    def __init__(self, folder: Path) -> None:
        library, self._file = folder / "wall_clock.so", folder / "offset"
        source = Path(__file__).with_name("wall_clock.c")
        command = ["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"]
        subprocess.run(command, check=True)
        self._file.write_bytes(struct.pack("=q", 0))
        for path in (folder, library, self._file):
            path.chmod(0o755)
        self.environment = {"LD_PRELOAD": str(library), "WALL_CLOCK_FILE": str(self._file)}

    def set(self, seconds: int) -> None:
        """Move it to so many seconds from the true time."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", seconds))


@pytest.fixture
def clock() -> Iterator[WallClock]:
    """The wall clock of processes that are started with its environment."""
    if shutil.which("cc") is None:
        pytest.skip("building the library that moves the clock needs a C compiler")
    with tempfile.TemporaryDirectory() as folder:
        yield WallClock(Path(folder))


@pytest.fixture
def database_url(clock: WallClock) -> Iterator[str]:
    """A PostgreSQL that has the clock. It isn't the embedded one, which is started with none of our
    environment."""
    with temporary_folder() as folder:
        account = folder.prepare()
        with Engines(folder, account, redis=False) as engines:
            command = psutil.Process(min(engines.pids)).cmdline()
        with (
            (folder.path / "moved.log").open("ab") as log,
            ended(
                children.start(
                    command,
                    account=account,
                    log=log,
                    death_signal=signal.SIGINT,
                    folder=folder.postgres,
                    environment=children.PLAIN_ENVIRONMENT | clock.environment,
                )
            ),
        ):
            until(lambda: answers(folder.database_url), PATIENCE)
            yield folder.database_url


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Interrupt the process at the end, and wait for it."""
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


def answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def created_at(service: Service) -> dt.datetime:
    """The time of creation of a new note, as the service has set it."""
    response = create_note(service)
    assert response.status_code == 201, response.text
    return dt.datetime.fromisoformat(response.json()["createdAt"])


def test_the_clock_is_set(
    start: Start, clock: WallClock, database_url: str, tmp_path: Path, table: Table
) -> None:
    with loaded(start, tmp_path, DATABASE_URL=database_url, **clock.environment) as load:
        for hours in (1, -1, 0):
            load.answers.clear()
            clock.set(hours * 3600)
            expected = dt.datetime.now(dt.UTC) + dt.timedelta(hours=hours)
            difference = abs(created_at(load.service) - expected)
            assert difference < dt.timedelta(seconds=PATIENCE), difference
            what = f"the clock is set to {hours:+d} h of the true time"
            table.add(what, load, load.seconds_to_recover())
            assert {*load.answers} <= {200, 201}, load.bodies
        assert not [line for line in load.service.errors if "is restarted" in line]
