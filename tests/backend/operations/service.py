"""The service as an operator runs it: real processes, a data folder and a port of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import httpx
import psutil

from backend.instance.folder import DataFolder
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
ROLES = ("web", "realtime", "worker", "jobs", "chain", "backfill", "beat")
NO_INSTANCE = Path(tempfile.gettempdir()) / "backend-tests-no-instance"
PATIENCE = 90  # seconds, for a machine that is busy with other things
# Reading the system's certificates takes longer than a request, and nothing here speaks TLS.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def plain_environment(**settings: object) -> dict[str, str]:
    """What an operator's shell has, and these settings; nothing of the test run's own.

    A data folder is always named: otherwise commands look for an instance that this checkout runs,
    and meet those of other tests.
    """
    stored = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    usual = {"ENV_FILE": os.devnull, "DATA_DIR": str(NO_INSTANCE)}
    return stored | usual | {name: str(value) for name, value in settings.items()}


def run_server(**settings: object) -> subprocess.CompletedProcess[str]:
    """Start the service with settings that don't let it start."""
    return subprocess.run(
        [sys.executable, "-m", "backend.embedded"],
        cwd=ROOT,
        env=plain_environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def run_manage(*arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run ``manage.py`` with these settings."""
    return subprocess.run(
        [sys.executable, ROOT / "manage.py", *arguments],
        env=plain_environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


class Service:
    """A started service. ``output`` is what it has printed until it was ready."""

    def __init__(
        self,
        data: Path,
        port: int | None = None,
        *,
        arguments: Sequence[str] = (),
        is_terminal: bool = True,
        output_file: Path | None = None,
        **settings: object,
    ) -> None:
        self.data = data
        self.port = port or free_port()
        self.environment = self.environment_of(data, self.port, **settings)
        written = output_file.open("w") if output_file else None
        is_terminal = is_terminal and written is None
        if is_terminal:
            screen, terminal = pty.openpty()
            tty.setraw(terminal)  # lines end as they were written
        self.process = subprocess.Popen(
            [sys.executable, "-m", "backend.embedded", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=written or (terminal if is_terminal else subprocess.PIPE),
            stderr=subprocess.PIPE,
            text=True,
        )
        if is_terminal:
            os.close(terminal)
            self.process.stdout = open(screen)  # noqa: SIM115 (closed with the service)
        if output_file and written:
            written.close()
            self.process.stdout = output_file.open()
        self.errors: list[str] = []
        self.family: list[psutil.Process] = []
        self._pools: set[psutil.Process] = set()
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()
        self.output = self._read_greeting()
        self.family = psutil.Process(self.process.pid).children(recursive=True)

    @staticmethod
    def environment_of(data: Path, port: int | None = None, **settings: object) -> dict[str, str]:
        """What a service with this data folder is started with."""
        port = port or free_port()
        environment: dict[str, object] = {
            "DATA_DIR": data,
            "PORT": port,
            "PUBLIC_URL": f"http://127.0.0.1:{port}",
            "WEB_WORKERS": 1,
            "WORKER_CONCURRENCY": 1,
        }
        return plain_environment(**(environment | settings))

    def _read_errors(self) -> None:
        assert self.process.stderr
        for line in iter(self.process.stderr.readline, ""):
            with self._news:
                self.errors.append(line)
                self._news.notify_all()

    def wait_for_line(self, text: str) -> str:
        """The first line of the log with this text, once it is there."""

        def matching_line() -> str | None:
            return next((line for line in self.errors if text in line), None)

        with self._news:
            assert self._news.wait_for(matching_line, PATIENCE), "".join(self.errors)
            return matching_line() or ""

    def _read_greeting(self) -> str:
        assert self.process.stdout
        lines = []
        with contextlib.suppress(OSError):  # as a terminal ends
            for line in self._lines():
                lines.append(line)
                if line.startswith("Ctrl-C"):
                    return "".join(lines)
        self.process.wait(PATIENCE)
        self._close()
        raise AssertionError(f"The service didn't start: {''.join(self.errors)}")

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the output; a file has more of them later, until the service ends."""
        assert self.process.stdout
        is_file = not (self.process.stdout.isatty() or stat.S_ISFIFO(self._mode()))
        while line := self.process.stdout.readline() or (
            is_file and self.process.poll() is None and " "
        ):
            if line == " ":
                time.sleep(0.02)
            else:
                yield line

    def _mode(self) -> int:
        assert self.process.stdout
        return os.fstat(self.process.stdout.fileno()).st_mode

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        return httpx.get(
            f"{self.url}{path}", headers=headers, timeout=PATIENCE, verify=NO_CERTIFICATES
        )

    def printed(self, pattern: str) -> str:
        match = re.search(pattern, self.output)
        assert match, self.output
        return match[1]

    def commands(self) -> list[str]:
        """The curl commands that were printed, as one would paste them."""
        return re.findall(r"^ +(curl (?:.*\\\n)*.*)$", self.output, re.MULTILINE)

    def child(self, word: str) -> psutil.Process:
        """The descendant whose command line has the word, the oldest first."""
        results = self.child_or_none(word)
        assert results, f"There is no process {word}."
        return results

    def child_or_none(self, word: str, but: psutil.Process | None = None) -> psutil.Process | None:
        """As ``child``; None if there is no other than this one."""
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process != but and any(word in part for part in process.cmdline()):
                    return process
        return None

    def processes_of(self, role: str) -> set[psutil.Process]:
        """The processes of a role: those that the application has forked, and named.

        A killed worker leaves the processes of its pool to the application for a moment.
        """
        application = self.child_or_none("backend.serve")
        children = application.children() if application else []
        results = set()
        for process in children:
            with contextlib.suppress(psutil.Error):
                self._pools |= set(process.children(recursive=True))
                if process not in self._pools and process.name() == f"svc-{role}":
                    results.add(process)
        return results

    def is_replaced(self, role: str, before: set[psutil.Process]) -> bool:
        """Whether one of the role's processes ``before`` has ended, and another is there."""
        now = self.processes_of(role)
        return len(now) == len(before) and now != before

    def wait_until_gone(self) -> list[psutil.Process]:
        """Wait for every process that was there when the service was ready; return survivors."""
        self.process.wait(PATIENCE)
        _, alive = psutil.wait_procs(self.family, timeout=PATIENCE)
        return alive

    def stop(self) -> int:
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        self._close()
        return status

    def _close(self) -> None:
        self._reader.join(PATIENCE)
        # Closing what is being read would wait for any process that still has the other end.
        assert not self._reader.is_alive(), f"processes are left: {self.wait_until_gone()}"
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


@contextlib.contextmanager
def services(folder: DataFolder) -> Iterator[Callable[..., Service]]:
    """Starts the service with the data folder; at the end it is stopped, if it still runs."""
    started: list[Service] = []

    def start(**settings: object) -> Service:
        started.append(Service(folder.path, **settings))
        return started[-1]

    try:
        yield start
    finally:
        for service in started:
            service.stop()
