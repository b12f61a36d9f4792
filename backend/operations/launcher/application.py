"""The service's own processes, as ``script/server`` starts them: one that loads the application and
forks the rest (``backend.operations.processes.instance``)."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from backend.instance.errors import StartError
from backend.kernel.process.children import before_exec, end_descendants, end_of, undisturbed
from backend.logs import plain
from backend.operations.processes.link import REFUSAL, TROUBLE, VARIABLE, Closed, Link
from backend.server.listeners import listening_socket

ROOT: Final = Path(__file__).resolve().parents[3]
_LOADING: Final = 120.0  # seconds
_RUNNING: Final = 90.0  # seconds, more than its supervisor gives its processes
_LOOK: Final = 0.2  # seconds
_STOP: Final = 20.0  # seconds, more than its processes have to finish what they do


class Refused(SystemExit):
    """The application doesn't start, and has written why. The text of the exception is that
    sentence, too; ``code`` is the status to end with."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status)
        self._reason = reason

    def __str__(self) -> str:
        return self._reason


_OF_THE_START: Final = {
    "postgres": "DATABASE_URL",
    "redis": "REDIS_URL",
    "profile": "PROFILE",
    "site": "SITE_ADDRESS",
    "host": "LISTEN_HOST",
}
"""Settings that the engines and the proxy were started with, by their names in messages."""


class Application:
    """The processes.

    The listening sockets are opened here once: clients find them open, and wait, while the
    processes are started again. ``on_idle`` is called several times a second while that lasts.
    """

    name = "the application"

    def __init__(
        self,
        environment: Mapping[str, str],
        lock: int,
        listen: Callable[[Mapping[str, Any]], Sequence[socket.socket]],
    ) -> None:
        self.on_idle: Callable[[], None] = lambda: None
        self._environment = dict(environment)
        self._lock = lock
        self._listen = listen
        self._sockets: list[socket.socket] = []
        self._renewed: list[Path] = []  # files of sockets that the one being loaded is to serve
        self._settings: Mapping[str, Any] = {}  # of the first start
        self._binds: Sequence[str] = ()
        self._process: subprocess.Popen[bytes] | None = None  # once it serves
        self._loading: _Loader | None = None
        self._leaving: list[subprocess.Popen[bytes]] = []

    def load(self, on_idle: Callable[[], None] | None = None) -> Loaded:
        """Start a process that loads the application. Returns when its settings are known to be
        right; the sockets listen then. Raises ``Refused`` if they aren't, and ``StartError``."""
        loader = self._loading = _Loader(self._environment, self._lock)
        settings: Mapping[str, Any] = loader.receive(on_idle or self.on_idle, _LOADING)
        if not self._sockets:
            self._binds, self._sockets = settings["binds"], [*self._listen(settings)]
            self._settings = settings
        if settings["binds"] != self._binds:
            raise StartError("The addresses it listens on have changed: start script/server again.")
        return Loaded(loader, settings)

    def serve(self, loaded: Loaded, *, new_keys: bool = False) -> str:
        """Have the database brought up to date and the processes started, now that the engines run.
        Return what the person at the terminal is to read, once every process has sent its first
        heartbeat. Raises as ``load`` does, and ``StartError`` with the role that doesn't start."""
        loader = loaded.loader
        greeting = self._prepare(loader, self.on_idle, new_keys=new_keys, is_awaited=True)
        self._process, self._loading = loader.process, None
        self._renewed.clear()
        loader.receive(self.on_idle, _RUNNING)
        loader.link.close()
        return greeting

    def _prepare(
        self,
        loader: _Loader,
        on_idle: Callable[[], None],
        *,
        new_keys: bool = False,
        is_awaited: bool,
    ) -> str:
        """Have the database brought up to date. Return the greeting. The processes are forked then;
        ``is_awaited`` says that the message about their first heartbeats is received."""
        loader.receive(on_idle, _LOADING)
        self._renew_sockets()
        is_terminal = sys.stdout.isatty()
        loader.send(
            {"new_keys": new_keys, "is_terminal": is_terminal, "is_awaited": is_awaited},
            self._sockets,
        )
        greeting: str = loader.receive(on_idle)
        return greeting

    def _renew_sockets(self) -> None:
        """Replace the sockets in files that were deleted: nothing can connect to those."""
        for place, bind in enumerate(self._binds):
            if _is_missing(bind):
                fresh = listening_socket(bind)
                self._sockets[place].close()
                self._sockets[place] = fresh
                self._renewed.append(Path(bind.removeprefix("unix:")))

    @property
    def missing(self) -> str | None:
        """What keeps others from reaching it although it runs: a file of a socket was deleted."""
        return next((f"{bind} is missing" for bind in self._binds if _is_missing(bind)), None)

    def start(self) -> None:
        """Start all of it again. Raises as ``load`` does, and ``OSError``. Not reentrant: nothing
        that ``on_idle`` calls may start it."""
        try:
            loader = self.load().loader
            # Not awaited: where one role doesn't start, the rest had better run.
            self._prepare(loader, self.on_idle, is_awaited=False)
            self._process, self._loading = loader.process, None
            self._renewed.clear()
            loader.link.close()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """End an application that is still being loaded, and doesn't serve."""
        if self._loading is not None:
            self._loading.abandon()
            self._loading = None
            # Nothing accepts from them; ``missing`` has to go on saying so.
            for file in self._renewed:
                file.unlink(missing_ok=True)
        self._renewed.clear()

    def replace(self) -> None:
        """Start a second one, as it is on the disk now, and end the first, which finishes what it
        is doing, once every process of the second has sent its first heartbeat. Both accept
        connections meanwhile. Raises as ``start`` does if the new one doesn't start, and
        ``StartError`` for settings that the engines and the proxy were started with, with the role
        that doesn't start, and if the first one ends before the second accepts connections. The
        first continues then, if it runs; a second one that has begun finishes what it is doing."""
        present = self._process
        was_alive = present is not None and present.poll() is None

        def watch_present() -> None:
            self.on_idle()
            if was_alive and present is not None and present.poll() is not None:
                raise StartError(f"The present application ended meanwhile ({end_of(present)}).")

        try:
            loaded = self.load(watch_present)
            loader = loaded.loader
            _check_same(self._settings, loaded.settings)
            self._prepare(loader, watch_present, is_awaited=True)
            try:
                loader.receive(self.on_idle, _RUNNING)
            except BaseException:
                loader.process.terminate()
                self._leaving.append(loader.process)
                loader.link.close()
                self._loading = None
                for file in self._renewed:
                    file.unlink(missing_ok=True)
                raise
            self._process, self._loading = loader.process, None
            self._renewed.clear()
            loader.link.close()
        finally:
            self.abandon()
        if present is not None:
            self._leaving.append(present)
            present.terminate()

    @property
    def is_alive(self) -> bool:
        """Whether it runs, or is being started."""
        self._leaving = [process for process in self._leaving if process.poll() is None]
        return self._loading is not None or (
            self._process is not None and self._process.poll() is None
        )

    @property
    def pids(self) -> set[int]:
        loading = [self._loading.process] if self._loading else []
        serving = [self._process] if self._process else []
        return {process.pid for process in (*serving, *loading, *self._leaving)}

    @property
    def end(self) -> str:
        """What ended it."""
        return end_of(self._process)

    def stop(self, spare: Iterable[int] = ()) -> None:
        """End every process except those in ``spare`` and their descendants. Those of an earlier
        application, too, have ``_STOP`` seconds to finish what they do."""
        process, self._process = self._process, None
        leaving = list(self._leaving)
        if process is not None:
            process.terminate()
            leaving.append(process)
        deadline = time.monotonic() + _STOP
        for each in leaving:
            with contextlib.suppress(subprocess.TimeoutExpired):
                each.wait(max(0.0, deadline - time.monotonic()))
        end_descendants(spare=spare)


def _is_missing(bind: str) -> bool:
    return bind.startswith("unix:") and not Path(bind.removeprefix("unix:")).is_socket()


def _check_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name, setting in _OF_THE_START.items():
        if before[name] != now[name]:
            raise StartError(f"{setting} has changed: start script/server again.")


@dataclass(frozen=True)
class Loaded:
    """An application that is being loaded, and the settings that the launcher needs."""

    loader: _Loader
    settings: Mapping[str, Any]


class _Loader:
    """A process that loads the application, and the messages that it sends until it serves."""

    def __init__(self, environment: Mapping[str, str], lock: int) -> None:
        ours, theirs = socket.socketpair()
        self.link = Link(ours)
        with theirs, undisturbed():
            self.process = subprocess.Popen(
                [sys.executable, "-m", "backend.serve", "all"],
                cwd=ROOT,
                env={**environment, VARIABLE: str(theirs.fileno())},
                stdin=subprocess.DEVNULL,
                # It holds the data folder too, for as long as it takes to end its processes.
                pass_fds=(lock, theirs.fileno()),
                start_new_session=True,
                preexec_fn=before_exec(signal.SIGTERM),
            )

    def send(self, message: Any, sockets: Sequence[socket.socket]) -> None:
        with contextlib.suppress(Closed):  # ``receive`` tells why
            self.link.send(message, sockets)

    def receive(self, on_idle: Callable[[], None], patience: float | None = None) -> Any:
        """The next message. Raises ``Refused`` if the process refuses to start or exits without
        one, and ``StartError`` if a role doesn't start, a signal has ended the process, or there is
        no message within ``patience`` seconds, not counting those that ``on_idle`` takes."""
        end = time.monotonic() + patience if patience is not None else float("inf")
        try:
            while True:
                try:
                    message = self.link.receive(_LOOK)[0]
                except TimeoutError:
                    began = time.monotonic()
                    on_idle()
                    end += time.monotonic() - began
                else:
                    break
                if time.monotonic() > end:
                    raise StartError(
                        f"The application didn't start within {patience:.0f} seconds: a module of "
                        "CLOUD_MODULES may be waiting for something."
                    )
        except Closed:
            raise self._refusal("the log has the reason") from None
        if isinstance(message, dict) and REFUSAL in message:
            raise self._refusal(message[REFUSAL])
        if isinstance(message, dict) and TROUBLE in message:
            raise StartError(message[TROUBLE])
        return message

    def _refusal(self, reason: str) -> BaseException:
        try:
            status = self.process.wait(_STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return Refused(1, reason)
        if status < 0:
            name = signal.Signals(-status).name
            return StartError(f"The start was ended by {name}.")
        return Refused(status or 1, reason)

    def abandon(self) -> None:
        # Killed first: it takes a closed link for the death of the launcher, and says so.
        self.process.kill()
        self.process.wait()
        self.link.close()


def child_environment(environment: Mapping[str, str], sockets: Path) -> dict[str, str]:
    """The environment of the application and of the proxy, from the one that was given. Settings in
    ``.env`` aren't in it: the application reads them each time that it starts."""
    return {
        **_MEMORY,
        **environment,
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": "backend.settings.django",
        "SOCKETS_FOLDER": str(sockets),
        "DEFAULT_LOG_FORMAT": plain.default_style(),
    }


# glibc gives each thread heaps of its own, which keep what one large response took.
_MEMORY: Final = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(256 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(1024 * 1024),
}
