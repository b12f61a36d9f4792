"""What happens to a machine, and to the engines on it: the service goes on by itself, and what it
has said holds.

``script/test --all tests/process/test_adversities.py -s`` prints the table of docs/operating.md.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from backend.embedded.folder import DataFolder
from tests.process.loaded import loaded, report
from tests.process.service import PATIENCE, Service
from tests.waiting import until

Start = Callable[..., Service]
pytestmark = pytest.mark.slow

STALL = 8.0
"""Seconds for which an engine answers nothing."""


def test_redis_is_emptied(start: Start, folder: DataFolder, tmp_path: Path) -> None:
    with loaded(start, tmp_path) as load:
        load.answers.clear()
        with redis.Redis(unix_socket_path=str(folder.redis_socket)) as client:
            client.flushall()
        report("Redis is emptied", load, load.heals())
        assert {*load.answers} <= {200, 201}, load.bodies


def test_postgres_is_restarted(start: Start, tmp_path: Path) -> None:
    with loaded(start, tmp_path) as load:
        process = load.service.child("/postgres")
        load.answers.clear()
        process.send_signal(signal.SIGINT)
        until(lambda: load.service.child_or_none("/postgres", but=process), PATIENCE)
        report("PostgreSQL is restarted", load, load.heals())
        assert {*load.answers} <= {200, 201, 503}, load.bodies


@pytest.mark.parametrize("engine", ["redis-server", "/postgres"])
def test_an_engine_stalls(start: Start, tmp_path: Path, engine: str) -> None:
    with loaded(start, tmp_path) as load:
        process = load.service.child(engine)
        family = [process, *process.children(recursive=True)]
        load.answers.clear()
        for each in family:
            each.suspend()
        time.sleep(STALL)  # the stall itself
        for each in family:
            with contextlib.suppress(Exception):
                each.resume()
        report(f"{engine} stalls for {STALL:.0f} s", load, load.heals())
        assert {*load.answers} <= {200, 201, 503}, load.bodies


@pytest.fixture
def small_disk(folder: DataFolder) -> Iterator[Path]:
    """The data folder on a disk of its own, of 400 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    command = ["mount", "-t", "tmpfs", "-o", "size=400m,mode=711", "tmpfs", str(folder.path)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets root mount nothing, as in a container")
    yield folder.path
    subprocess.run(["umount", "--lazy", str(folder.path)], check=True)


def test_the_disk_is_full(start: Start, small_disk: Path, tmp_path: Path) -> None:
    with loaded(start, tmp_path) as load:
        load.answers.clear()
        filler = small_disk / "filler"
        with filler.open("wb") as file, contextlib.suppress(OSError):
            while file.write(b"\0" * 2**20):
                file.flush()
        until(lambda: load.answers[503] + load.answers[500] > 50, PATIENCE)
        time.sleep(STALL)  # the disk stays full
        filler.unlink()
        report("the disk is full", load, load.heals())
        assert {*load.answers} <= {200, 201, 503}, load.bodies


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    """The wall clock of the service's own processes."""
    if shutil.which("cc") is None:
        pytest.skip("building the library that moves the clock needs a C compiler")
    return WallClock(tmp_path)


class WallClock:
    """A clock that may be set at any time, for processes that are started with ``settings``."""

    def __init__(self, folder: Path) -> None:
        library, self._file = folder / "wall_clock.so", folder / "offset"
        source = Path(__file__).with_name("wall_clock.c")
        command = ["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"]
        subprocess.run(command, check=True)
        self._file.write_bytes(struct.pack("=q", 0))
        self.settings = {"LD_PRELOAD": library, "WALL_CLOCK_FILE": self._file}

    def set(self, seconds: int) -> None:
        """Move it to so many seconds from the true time."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", seconds))


def test_the_clock_is_set(start: Start, clock: WallClock, tmp_path: Path) -> None:
    with loaded(start, tmp_path, **clock.settings) as load:
        for hours in (1, -1, 0):
            load.answers.clear()
            clock.set(hours * 3600)
            report(f"the clock is set to {hours:+d} h", load, load.heals())
            assert {*load.answers} <= {200, 201}, load.bodies
        assert not [line for line in load.service.errors if "is restarted" in line]
