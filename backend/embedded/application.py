"""The service's own processes, as ``script/server`` starts them: one that loads the application and
forks the rest (``backend.processes.instance``)."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from backend.embedded import lines
from backend.embedded.children import before_exec, end_descendants, end_of, undisturbed
from backend.embedded.errors import StartError
from backend.processes.link import VARIABLE, Closed, Link

ROOT: Final = Path(__file__).resolve().parents[2]
_STOP: Final = 20.0  # seconds, more than its processes have to finish what they do


class Application:
    """The processes. ``pids`` are those of the engines, which end later.

    The listening sockets are opened here once: clients find them open, and wait, while the
    processes are started again.
    """

    name = "the application"

    def __init__(
        self,
        environment: Mapping[str, str],
        lock: int,
        listen: Callable[[Mapping[str, Any]], Sequence[socket.socket]],
    ) -> None:
        self._environment = dict(environment)
        self._lock = lock
        self._listen = listen
        self._sockets: Sequence[socket.socket] = ()
        self._binds: Sequence[str] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: Link | None = None
        self._leaving: list[subprocess.Popen[bytes]] = []

    def begin(self) -> Mapping[str, Any]:
        """Start loading the application. The settings that the launcher needs, when they are known
        to be right; the sockets listen then. Raises ``SystemExit`` if they aren't."""
        ours, theirs = socket.socketpair()
        with theirs, undisturbed():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "backend.serve", "all"],
                cwd=ROOT,
                env=self._environment | {VARIABLE: str(theirs.fileno())},
                stdin=subprocess.DEVNULL,
                # It holds the data folder too, for as long as it takes to end its processes.
                pass_fds=(self._lock, theirs.fileno()),
                start_new_session=True,
                preexec_fn=before_exec(signal.SIGTERM),
            )
        self._link = Link(ours)
        settings: Mapping[str, Any] = self._receive()
        if not self._sockets:
            self._binds, self._sockets = settings["binds"], self._listen(settings)
        if settings["binds"] != self._binds:
            raise StartError("The addresses it listens on have changed: start script/server again.")
        return settings

    def go_on(self, *, new_keys: bool = False) -> str:
        """Have the database brought up to date and the processes started, now that the engines run.
        What the person at the terminal is to read. Raises ``SystemExit`` if that fails."""
        assert self._link is not None
        with contextlib.suppress(Closed):
            self._link.send({"new_keys": new_keys}, self._sockets)
        greeting: str = self._receive()
        self._link.close()
        return greeting

    def start(self) -> None:
        """Start all of it again. Raises ``SystemExit`` if that fails."""
        self.begin()
        self.go_on()

    def replace(self) -> None:
        """Start it once more, as it is on the disk now, and end the present one, which finishes
        what it is doing. Both accept connections meanwhile. Raises ``StartError`` or ``SystemExit``
        if the new one doesn't start; the present one goes on then."""
        present = self._process
        try:
            self.start()
        except (StartError, SystemExit):
            if self._process is not None and self._process is not present:
                self._process.kill()
                self._process.wait()
            self._process = present
            raise
        if present is not None:
            present.terminate()
            self._leaving.append(present)

    @property
    def is_alive(self) -> bool:
        self._leaving = [process for process in self._leaving if process.poll() is None]
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def end(self) -> str:
        """What ended it."""
        return end_of(self._process)

    def stop(self, spare: Sequence[int | None] = ()) -> None:
        """End every process except those in ``spare`` and their descendants."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP)
        end_descendants(spare=spare)

    def _receive(self) -> Any:
        assert self._link is not None
        assert self._process is not None
        try:
            return self._link.receive()[0]
        except Closed:
            status = self._process.wait()
        if status < 0:
            name = signal.Signals(-status).name
            raise StartError(f"The start was ended by {name}; start the service again.")
        raise SystemExit(status or 1)  # it has written the reason


def child_environment(given: Mapping[str, str], sockets: Path) -> dict[str, str]:
    """The environment of the application and of the proxy, from the one that was given."""
    return {
        **_MEMORY,
        **given,
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": "backend.settings",
        "SOCKETS_FOLDER": str(sockets),
        "LOG_FORMAT": lines.style(),
    }


# glibc gives each thread heaps of its own, which keep what one large response took.
_MEMORY: Final = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(256 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(1024 * 1024),
}
