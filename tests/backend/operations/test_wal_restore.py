"""An instance whose machine is lost, made again from what was archived."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from pyrage import x25519

from backend.instance import wal_archive as state
from backend.instance.folder import DataFolder, temporary_folder
from backend.instance.keys import read_keys
from tests.backend.operations.service import PATIENCE, ROOT, Service
from tests.polling import until

pytestmark = pytest.mark.slow
KEY = str(x25519.Identity.generate())
CONTENT = b"the bytes of a file\n" * 1000


class Lost:
    """What was archived of an instance that is gone, and what it had been."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.keys: dict[str, str] = {}
        self.between = datetime.now(UTC)  # after the first note and before the second
        self.file = ""

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "PROFILE": "small",
            "BACKUP_TO": self.place,
            "BACKUP_KEY": KEY,
            "BACKUP_SCHEDULE": "0 0 29 2 *",
        }

    def client(self, service: Service) -> httpx.Client:
        headers = {
            "X-Parse-Application-Id": self.keys["APP_ID"],
            "X-Parse-Master-Key": self.keys["MASTER_KEY"],
        }
        return httpx.Client(base_url=f"{service.url}/api", headers=headers, timeout=PATIENCE)

    def notes(self, service: Service) -> list[int]:
        with self.client(service) as client:
            objects = client.get("/classes/Note", params={"order": "n"}).json()["results"]
            return [note["n"] for note in objects]


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Lost:
    """A machine that was lost a while after its last write."""
    lost = Lost(tmp_path_factory.mktemp("place"))
    with temporary_folder() as folder:
        service = Service(folder.path, is_terminal=False, **lost.settings)
        try:
            lost.keys = read_keys(folder)
            until(lambda: state.read(folder).bases.done, PATIENCE)
            with lost.client(service) as client:
                client.post("/schemas/Note", json={"fields": {"n": {"type": "Number"}}})
                assert client.post("/classes/Note", json={"n": 1}).status_code == 201
                uploaded = client.post("/files/a.txt", content=CONTENT).json()
                lost.file = uploaded["url"].partition("/api")[2]
                lost.between = datetime.now(UTC)
                assert client.post("/classes/Note", json={"n": 2}).status_code == 201
                written = time.time()
                until(lambda: all(done > written for done in archived(folder)), PATIENCE)
        finally:
            kill(service)
    return lost


def archived(folder: DataFolder) -> list[float]:
    now = state.read(folder)
    return [part.done or 0 for part in (now.log, now.files)]


def kill(service: Service) -> None:
    """End all processes as a power cut does."""
    for process in (psutil.Process(service.process.pid), *service.family):
        with contextlib.suppress(psutil.Error):
            process.kill()
    service.wait_until_gone()


@pytest.fixture
def restore(folder: DataFolder, lost: Lost) -> Iterator[Callable[..., Service]]:
    started: list[Service] = []

    def start(*arguments: str) -> Service:
        started.append(
            Service(
                folder.path,
                arguments=("--restore", "wal", *arguments),
                is_terminal=False,
                **lost.settings,
            )
        )
        return started[-1]

    yield start
    for service in started:
        service.stop()


def test_the_end_of_the_archive_is_restored(restore, lost, folder):
    attempt = subprocess.Popen(
        [sys.executable, "-m", "backend.embedded", "--restore", "wal"],
        cwd=ROOT,
        env=Service.environment_of(folder.path, **lost.settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # Killed halfway, it leaves nothing that serves, and the same command begins again.
    until(lambda: (folder.engines / "postgres.restoring/recovery.signal").exists(), PATIENCE)
    family = psutil.Process(attempt.pid).children(recursive=True)
    for process in family:
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)
    attempt.kill()
    attempt.wait()
    psutil.wait_procs(family, PATIENCE)
    assert not folder.postgres.exists()

    service = restore()
    assert lost.notes(service) == [1, 2]
    assert read_keys(folder).items() >= lost.keys.items()
    assert httpx.get(f"{service.url}/api{lost.file}").content == CONTENT
    assert "Held       This instance was restored" in service.output
    until(lambda: state.read(folder).is_held, PATIENCE)
    assert len([*lost.place.glob("wal/*")]) == 1


def test_the_moment_between_two_writes_is_restored(restore, lost):
    service = restore("--until", lost.between.isoformat())
    assert lost.notes(service) == [1]
    assert httpx.get(f"{service.url}/api{lost.file}").content == CONTENT
