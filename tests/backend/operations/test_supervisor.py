"""Processes that end or hang are replaced; the others don't notice."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from backend.kernel.process import restart_report
from backend.kernel.process.restart_report import Restarted
from tests.backend.operations.service import PATIENCE, ROOT, plain_environment
from tests.polling import until


class Supervised:
    """A running supervisor (``tests.backend.operations.supervised``)."""

    def __init__(self, folder: Path, silence: float, *roles: str, **environment: float) -> None:
        self.folder = folder
        (folder / "reports").mkdir(exist_ok=True)
        self.names = [role.partition("=")[0] for role in roles]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.backend.operations.supervised",
                folder,
                str(silence),
                *roles,
            ],
            cwd=ROOT,
            env=plain_environment(**environment),
            stderr=subprocess.DEVNULL,
        )

    def pid(self, name: str) -> int:
        """The number of the role's process, once it has begun to work."""
        place = self.folder / name
        until(place.exists, PATIENCE)
        return int(place.read_text())

    def successor(self, name: str, pid: int) -> int:
        """The number of the process that has replaced this one."""
        until(lambda: self.pid(name) != pid, PATIENCE)
        return self.pid(name)

    def send(self, path: str) -> socket.socket:
        """A connection on which this was requested from ``answer_requests``."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(str(self.folder / "socket"))
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return connection

    def state(self, path: str = "/") -> dict[str, Any]:
        """The response; empty where there is none."""
        try:
            with self.send(path) as connection, connection.makefile("rb") as response:
                state: dict[str, Any] = json.loads(response.read().partition(b"\r\n\r\n")[2])
        except (OSError, ValueError):
            return {}
        return state

    def reported(self, name: str) -> Restarted | None:
        parsed = restart_report.read(self.folder / "reports")
        return next((item for item in parsed if item.name == name), None)


Start = Callable[..., Supervised]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Supervised] = []

    def start(*roles: str, silence: float = 60, **environment: float) -> Supervised:
        started.append(Supervised(tmp_path, silence, *roles, **environment))
        return started[-1]

    yield start
    for supervised in started:
        supervised.process.kill()
        supervised.process.wait()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_process_that_is_killed_is_replaced_and_the_others_go_on(
    start: Start, number: signal.Signals
) -> None:
    supervised = start("first=serve", "second=serve")
    first, second = supervised.pid("first"), supervised.pid("second")
    psutil.Process(first).send_signal(number)
    assert supervised.successor("first", first) != first
    assert supervised.pid("second") == second
    until(lambda: supervised.reported("first") is not None, PATIENCE)
    report = supervised.reported("first")
    assert report is not None
    assert (report.restarts, report.is_failing, report.last_end) == (1, False, number.name)
    assert supervised.reported("second") is None


def test_a_machine_without_room_for_a_process_ends_none(start: Start) -> None:
    supervised = start("first=serve", "second=serve", REFUSED_FORKS=2)
    first, second = supervised.pid("first"), supervised.pid("second")
    assert psutil.pid_exists(first)
    assert psutil.pid_exists(second)
    report = supervised.reported("first")
    assert report is not None
    assert report.last_end == "no process: Resource temporarily unavailable"


@pytest.mark.slow
def test_a_process_that_hangs_is_replaced(start: Start) -> None:
    supervised = start("first=hang", "second=serve", "third=wait", silence=1.5)
    first, second, third = map(supervised.pid, supervised.names)
    supervised.successor("first", first)
    assert not psutil.pid_exists(first)
    assert (supervised.pid("second"), supervised.pid("third")) == (second, third)
    report = supervised.reported("first")
    assert report is not None
    assert report.last_end == "it hung"


@pytest.mark.slow
def test_a_web_process_without_free_threads_is_replaced(start: Start) -> None:
    supervised = start("web=answer_requests")
    pid = supervised.pid("web")
    until(lambda: supervised.state("/state"), PATIENCE)
    with supervised.send("/hang"), supervised.send("/"):
        successor = supervised.successor("web", pid)
    until(lambda: supervised.state().get("pid") == successor, PATIENCE)
    report = supervised.reported("web")
    assert report is not None
    assert report.last_end == "it hung"


@pytest.mark.slow
def test_threads_that_end_are_replaced_and_counted(start: Start) -> None:
    supervised = start("web=answer_requests")
    pid = supervised.pid("web")
    until(lambda: supervised.state().get("pid") == pid, PATIENCE)
    for ended in range(1, 4):
        assert supervised.state("/end-threads")["pid"] == pid
        assert supervised.state()["pid"] == pid
        assert supervised.state()["ended_threads"] == ended


@pytest.mark.slow
def test_a_stopped_process_is_replaced(start: Start) -> None:
    """It can no longer end on its own."""
    supervised = start("first=serve", silence=1.5)
    first = supervised.pid("first")
    psutil.Process(first).suspend()
    supervised.successor("first", first)
    assert not psutil.pid_exists(first)


def test_a_process_that_never_begins_to_serve_is_replaced(start: Start) -> None:
    supervised = start("first=begin_late", silence=1.5, START_TIME=1)
    first = supervised.pid("first")
    supervised.successor("first", first)
    assert not psutil.pid_exists(first)


@pytest.mark.slow
def test_a_supervisor_that_was_stopped_kills_nothing_when_it_goes_on(start: Start) -> None:
    """As on a paused virtual machine: all its processes were silent."""
    supervised = start("first=serve", "second=serve", silence=6)
    pids = [*map(supervised.pid, supervised.names)]
    everybody = [psutil.Process(pid) for pid in (supervised.process.pid, *pids)]
    for process in everybody:
        process.suspend()
    with pytest.raises(subprocess.TimeoutExpired):
        supervised.process.wait(8)
    for process in everybody:
        process.resume()
    psutil.Process(pids[0]).kill()
    supervised.successor("first", pids[0])
    assert supervised.pid("second") == pids[1]


@pytest.mark.slow
def test_what_ends_again_and_again_is_reported_and_the_others_go_on(start: Start) -> None:
    supervised = start("first=fail", "second=serve")
    second = supervised.pid("second")

    def is_failing() -> bool:
        report = supervised.reported("first")
        return report is not None and report.is_failing

    until(is_failing, PATIENCE)
    results = supervised.reported("first")
    assert results is not None
    assert (results.restarts, results.last_end) == (5, "status 3")
    assert supervised.pid("second") == second
    assert supervised.reported("second") is None


@pytest.mark.slow
def test_a_new_supervisor_replaces_the_report_of_the_one_that_leaves(start: Start) -> None:
    """As after a reload with repaired code."""

    def is_failing() -> bool:
        role = leaving.reported("first")
        return role is not None and role.is_failing

    leaving = start("first=fail", "second=ignore_sigterm")
    until(is_failing, PATIENCE)
    leaving.process.terminate()
    start("first=serve", "second=serve")
    until(lambda: leaving.reported("first") is None, PATIENCE)
    assert leaving.process.wait(PATIENCE) == 0
    assert leaving.reported("first") is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_processes(start: Start, number: signal.Signals) -> None:
    supervised = start("first=serve", "second=hang", "third=fail")
    pids = [*map(supervised.pid, supervised.names)]
    supervised.process.send_signal(number)
    assert supervised.process.wait(PATIENCE) == 0
    assert not any(map(psutil.pid_exists, pids))


def test_processes_end_with_their_supervisor(start: Start) -> None:
    supervised = start("first=serve", "second=hang")
    processes = [psutil.Process(supervised.pid(name)) for name in supervised.names]
    supervised.process.kill()
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
    assert alive == []


def test_the_child_of_a_killed_process_is_adopted_and_reaped(start: Start) -> None:
    supervised = start("first=leave_orphan")
    first = supervised.pid("first")
    until((supervised.folder / "orphan").exists, PATIENCE)
    orphan = psutil.Process(int((supervised.folder / "orphan").read_text()))
    psutil.Process(first).kill()
    supervised.successor("first", first)
    assert orphan.ppid() == supervised.process.pid
    orphan.kill()
    until(lambda: not psutil.pid_exists(orphan.pid), PATIENCE)


@pytest.mark.slow
def test_what_ignores_sigterm_is_killed(start: Start) -> None:
    supervised = start("first=ignore_sigterm")
    first = supervised.pid("first")
    supervised.process.terminate()
    assert supervised.process.wait(PATIENCE) == 0
    assert not psutil.pid_exists(first)
