"""The whole service as ``script/server`` starts it: how long that takes, and what it holds.

    script/bench start [--rounds N]     seconds of each phase of a start, and of a stop
    script/bench memory [--alone]       PSS of each process, idle and under load

PSS counts a page that processes share in parts, so that the sum is what the machine has less of.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from backend.instance.folder import DataFolder
from bench import report, servers
from bench.failure import BenchFailure

PATIENCE: Final = 120.0  # seconds
MASTER_KEY: Final = "X-Svc-Master-Key"
SETTLED: Final = 20.0
"""Seconds after which an idle service is measured."""
_LOOK = 0.005
PHASES: Final = ("settings", "engines", "database up to date", "web answers", "ready")


class Whole:
    """A started service. ``seconds`` has the moments of its phases, from its start."""

    def __init__(self, folder: DataFolder, **settings: object) -> None:
        self.folder = folder
        self.port = servers.free_port()
        self.log = Path(tempfile.mkdtemp(prefix="svc-bench-log-")) / "log"
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        given = {"DATA_DIR": folder.path, "PORT": self.port, "ENV_FILE": os.devnull} | settings
        self.began = time.monotonic()
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "backend.embedded"],
                cwd=servers.ROOT,
                env=kept | {name: str(value) for name, value in given.items()},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.seconds = self._phases()

    def _phases(self) -> dict[str, float]:
        web = self.folder.app_sockets / "web.sock"
        seen: dict[str, Callable[[], bool]] = {
            "settings": self.folder.instance.exists,
            "engines": lambda: self.folder.redis_socket.exists() and self._has_database(),
            "database up to date": lambda: bool(self._named("svc-web")),
            "web answers": lambda: web.exists() and self._answers("/health"),
            "ready": lambda: "Ctrl-C stops" in self.log.read_text(),
        }
        moments: dict[str, float] = {}
        for name in PHASES:
            while not seen[name]():
                if self.process.poll() is not None or self._age() > PATIENCE:
                    raise BenchFailure(f"it doesn't start: {self.log.read_text()[-400:]}")
                time.sleep(_LOOK)
            moments[name] = self._age()
        return moments

    def _age(self) -> float:
        return time.monotonic() - self.began

    def _has_database(self) -> bool:
        with contextlib.suppress(OSError, IndexError):
            lines = (self.folder.postgres / "postmaster.pid").read_text().splitlines()
            return lines[7].strip() == "ready"
        return False

    def _answers(self, path: str) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=5).status_code == 200
        return False

    def processes(self) -> list[psutil.Process]:
        """All of its processes."""
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]

    def _named(self, name: str) -> list[psutil.Process]:
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                if process.name() == name:
                    found.append(process)
        return found

    def stop(self) -> float:
        """Stop it. Seconds until everything has ended."""
        began = time.monotonic()
        self.process.terminate()
        self.process.wait(PATIENCE)
        return time.monotonic() - began


@contextlib.contextmanager
def started(folder: DataFolder, **settings: object) -> Iterator[Whole]:
    """A service that is stopped when the block ends."""
    whole = Whole(folder, **settings)
    try:
        yield whole
    finally:
        if whole.process.poll() is None:
            whole.stop()


def title(process: psutil.Process) -> str:
    """What the process is: its role, or the engine."""
    name = process.name()
    if name.startswith("svc-"):
        return name.removeprefix("svc-")
    # A process that ends has no command line any more.
    command = " ".join([name, *process.cmdline()])
    for word, text in (
        ("backend.serve", "the process that all are forked from"),
        ("backend.embedded", "script/server"),
        ("postgres", "PostgreSQL"),
        ("redis", "Redis"),
        ("node", "Parse Server"),
    ):
        if word in command:
            return text
    return name


def megabytes(processes: Sequence[psutil.Process]) -> dict[str, tuple[int, float]]:
    """Processes, and megabytes (MiB) of PSS, by title."""
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for process in processes:
        with contextlib.suppress(psutil.Error):
            name = title(process)
            number, size = found[name]
            found[name] = (number + 1, size + process.memory_full_info().pss / 2**20)
    return dict(found)


def master_headers(folder: DataFolder) -> dict[str, str]:
    """Headers with the keys of the folder's instance."""
    lines = folder.keys.read_text().splitlines()
    keys = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {
        "X-Svc-Application-Id": keys["APP_ID"],
        "X-Svc-REST-API-Key": keys["REST_API_KEY"],
        MASTER_KEY: keys["MASTER_KEY"],
    }


@contextlib.contextmanager
def load(port: int, mount: str, headers: Mapping[str, str], seconds: float) -> Iterator[None]:
    """Clients that create and find objects, for so many seconds before the block and within it."""
    over = threading.Event()

    def work() -> None:
        with httpx.Client(headers=dict(headers), timeout=PATIENCE) as client:
            address = f"http://127.0.0.1:{port}{mount}/classes/Note"
            while not over.is_set():
                client.post(address, json={"text": "x" * 100, "number": 7})
                client.get(address, params={"limit": 100, "order": "-createdAt"})

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _parser(program: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=program,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def start_command(given: Sequence[str]) -> None:
    parser = _parser("script/bench start")
    parser.add_argument("--rounds", type=int, default=5, help="later starts (%(default)s)")
    options = parser.parse_args(given)
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    for profile in ("default", "small"):
        with temporary() as folder:
            for number in range(options.rounds + 1):
                with started(folder, PROFILE=profile) as whole:
                    seconds = whole.seconds
                    kind = "first" if number == 0 else "later"
                    rows[f"{profile}, {kind}"].append({**seconds, "stop": whole.stop()})
    heads = [*PHASES, "stop"]
    lines = [report.line("start", *heads), report.ruler(len(heads) + 1)]
    for name, runs in rows.items():
        figures = [f"{statistics.median(run[head] for run in runs):.2f}" for head in heads]
        lines.append(report.line(name, *figures))
    kept = report.keep(facts(), start=rows)
    print("seconds from the start, medians; the last column from SIGTERM\n\n" + "\n".join(lines))
    print(f"all figures: {kept}", file=sys.stderr)


def memory_command(given: Sequence[str]) -> None:
    parser = _parser("script/bench memory")
    parser.add_argument("--alone", action="store_true", help="without Parse Server")
    options = parser.parse_args(given)
    found: dict[str, dict[str, dict[str, tuple[int, float]]]] = {}
    for profile in ("default", "small"):
        with temporary() as folder, started(folder, PROFILE=profile) as whole:
            headers = master_headers(folder)
            time.sleep(SETTLED)
            idle = megabytes(whole.processes())
            with load(whole.port, "/api", headers, 10.0):
                busy = megabytes(whole.processes())
            found[f"this service, {profile}"] = {"idle": idle, "under load": busy}
    if not options.alone:
        servers.install_peer()
        with servers.engines() as engines, servers.peer(engines, 1) as target:
            roots = [psutil.Process(pid) for pid in (*target.pids, engines.postgres_pid)]
            master = {
                "X-Parse-Application-Id": target.headers["X-Parse-Application-Id"],
                "X-Parse-REST-API-Key": target.headers["X-Parse-REST-API-Key"],
            }

            def all_of_them() -> list[psutil.Process]:
                return [each for root in roots for each in (root, *root.children(recursive=True))]

            time.sleep(SETTLED)
            idle = megabytes(all_of_them())
            with load(target.port, target.mount, master, 10.0):
                busy = megabytes(all_of_them())
            found["Parse Server and PostgreSQL"] = {"idle": idle, "under load": busy}
    lines = []
    for name, states in found.items():
        lines += [
            f"\n{name}\n",
            report.line("process", "number", *states),
            report.ruler(2 + len(states)),
        ]
        for process in sorted({one for state in states.values() for one in state}):
            number = max(state.get(process, (0, 0.0))[0] for state in states.values())
            sizes = [f"{state.get(process, (0, 0.0))[1]:.0f}" for state in states.values()]
            lines.append(report.line(process, number, *sizes))
        sums = [f"{sum(size for _, size in state.values()):.0f}" for state in states.values()]
        lines.append(report.line("all, MiB", "", *sums))
    kept = report.keep(facts(), memory=found)
    print("\n".join(lines))
    print(f"all figures: {kept}", file=sys.stderr)


@contextlib.contextmanager
def temporary() -> Iterator[DataFolder]:
    """A data folder that is gone when the block ends."""
    from backend.instance.folder import temporary_folder

    with temporary_folder("svc-bench-") as folder:
        yield folder


def facts() -> dict[str, Any]:
    """What the figures depend on."""
    from bench import accounting

    return {"machine": accounting.machine()}
