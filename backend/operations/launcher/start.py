"""``script/server``: from a data folder to a running service, and back.

Starts the engines, the application and the proxy, and restarts those that exit. When this process
exits for any reason, all of them exit. It loads nothing of the application.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import psutil

from backend.instance.errors import StartError
from backend.instance.folder import DataFolder, unusable
from backend.instance.keys import ensure_keys, has_unseen_keys, mark_keys_seen
from backend.kernel.process import restart_report
from backend.kernel.process.children import STOPPING, adopt_orphans
from backend.logs import plain
from backend.operations.embedded.engines import Engines
from backend.operations.launcher import pointers, ports, restoration
from backend.operations.launcher.application import Application, child_environment
from backend.operations.launcher.proxy import Proxy
from backend.operations.launcher.watch import Program, Watch
from backend.operations.processes import reloads
from backend.operations.processes.link import SMALL
from backend.probe import SocketConnection
from backend.server.listeners import listening_socket
from backend.settings import environment
from backend.settings.areas.processes import Servers, data_dir

ROOT = Path(__file__).resolve().parents[3]
_READY = 120.0  # seconds
_LOOK = 0.2  # seconds


class _Stopped(BaseException):
    """SIGTERM or Ctrl-C."""


class _Signals:
    """The signals that stop the service: the first of them raises ``_Stopped``, and the rest are
    ignored, for stopping is under way."""

    def __init__(self) -> None:
        self._came = False
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, self._stop)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(signal.SIGHUP, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> NoReturn:
        self._came = True
        for each in STOPPING:
            signal.signal(each, signal.SIG_IGN)
        raise _Stopped

    def check(self) -> None:
        """Raise ``_Stopped`` if one came. Python drops an exception that is raised in some places,
        such as a destructor."""
        if self._came:
            raise _Stopped


def main(restored: Sequence[str] = ()) -> int:
    """Run the service until SIGTERM or Ctrl-C. The result is the process's exit status.

    ``restored`` is an archive that is restored first, with options of ``manage.py restore``.
    """
    signals = _Signals()
    is_started = False
    try:
        adopt_orphans()
        with contextlib.ExitStack() as stack:
            try:
                service = _start(stack, signals, restored)
                is_started = True
                service.run()
            except _Stopped:
                plain.info("stopping")
                raise
            except (OSError, psutil.Error) as error:
                if not is_started:
                    raise
                plain.error(
                    "script/server ends because of an internal error",
                    error=str(error),
                    exception=traceback.format_exc(),
                )
                return 1
        return 0
    except StartError as error:
        print(f"script/server: {error}", file=sys.stderr)
        return 1
    except (OSError, psutil.Error) as error:
        print(f"script/server: {_failure(error, is_started=is_started)}", file=sys.stderr)
        return 1
    except _Stopped:
        return 0


def _failure(error: Exception, *, is_started: bool) -> str:
    """Why the service can't be started, or how its end failed, as one sentence."""
    data = Path(os.environ.get("DATA_DIR", ""))
    if (
        isinstance(error, OSError)
        and isinstance(error.filename, str)
        and data.is_absolute()
        and Path(error.filename).is_relative_to(data)
    ):
        return unusable(Path(error.filename), error)
    if is_started:
        return f"The service has ended, but not in order: {error}."
    return f"The service can't be started: {error}."


class _Service:
    """The running service."""

    def __init__(
        self,
        folder: DataFolder,
        application: Application,
        engines: Engines,
        programs: Sequence[Program],
        signals: _Signals,
    ) -> None:
        self._folder = folder
        self._application = application
        self._engines = engines
        self._signals = signals
        self._watch = Watch(programs, folder.reports, engines.programs)
        for program in programs:
            program.on_idle = self._look

    def run(self) -> NoReturn:
        """Restart what exits, and reload the application on request, until ``_Stopped``."""
        while True:
            self._reload()
            self._repair()
            self._look()
            time.sleep(_LOOK)

    def _look(self) -> None:
        self._signals.check()
        self._watch.look()
        self._engines.pass_on_lines()

    def _reload(self) -> None:
        """Replace the application if ``manage.py reload`` has requested it."""
        answers = reloads.take(self._folder)
        if answers:
            self._replace(answers)

    def _repair(self) -> None:
        """Replace an application whose sockets were deleted."""
        if self._watch.is_unreachable(self._application):
            plain.error("the application is replaced", reason=self._application.missing)
            self._replace([])
            self._watch.forget_misses(self._application)

    def _replace(self, answers: Sequence[Path]) -> None:
        try:
            self._watch.replace(self._application)
        except (StartError, SystemExit, OSError) as error:
            if self._application.is_alive:
                event, state = "the present one goes on", "The present one continues."
            else:
                event, state = "none is running", "None is running; its restarts continue."
            plain.error(f"the new application doesn't start; {event}", end=str(error))
            reloads.answer(answers, f"{error}\n{state}")
        except BaseException:
            reloads.answer(answers, "The service is being stopped.")
            raise
        else:
            plain.info("the application was replaced")
            reloads.answer(answers, "")


def _start(stack: contextlib.ExitStack, signals: _Signals, restored: Sequence[str]) -> _Service:
    """Start everything and greet the person at the terminal. ``stack`` ends it, in order."""
    # The application reads .env itself, each time it is started.
    variables_at_start = dict(os.environ)
    environment.read_file(environment.env_file(ROOT / ".env"))
    folder = DataFolder(data_dir())
    variables_at_start["DATA_DIR"] = os.environ["DATA_DIR"] = str(folder.path)
    account = folder.prepare(Servers.ENGINE_USER.read())
    lock = stack.enter_context(folder.hold())
    ensure_keys(folder)
    restart_report.clear(folder.reports)
    reloads.make_folder(folder)
    variables = child_environment(variables_at_start, folder.app_sockets)
    application = Application(variables, lock, listen)
    stack.callback(application.stop)
    # Every setting is read and judged here, before anything else is started.
    loaded = application.load()
    settings = loaded.settings
    stack.callback(folder.forget)
    folder.record(pid=os.getpid(), address=settings["address"])
    stack.callback(pointers.forget, folder)
    pointers.point_to(folder)
    proxy = None
    if settings["site"]:
        # Unlike the application, it doesn't read .env.
        proxy_variables = {**variables, "LOG_FORMAT": plain.style()}
        proxy = Proxy(proxy_variables, settings, folder.app_sockets, folder.path / "caddy")
        proxy.check()
    engines = Engines(
        folder,
        account,
        postgres=settings["postgres"],
        redis=settings["redis"],
        is_small=settings["profile"] == SMALL,
    )
    if restored and restoration.is_of_wal(restored):
        restoration.restore(restored, variables)
        application.abandon()
        loaded, restored = application.load(), ()
    # The order of the end: the proxy, the application, the engines, the last lines of their logs.
    after_engines = stack.enter_context(contextlib.ExitStack())
    stack.enter_context(engines)
    stack.callback(lambda: application.stop(engines.pids))
    if restored:
        restoration.restore(restored, variables)
        # The keys are other ones now.
        application.abandon()
        loaded = application.load()
    greeting = application.serve(loaded, new_keys=has_unseen_keys(folder))
    programs: list[Program] = [*engines.programs, application]
    if proxy is not None:
        stack.callback(proxy.stop)
        proxy.start()
        programs.append(proxy)
    _wait_until_ready(SocketConnection(str(folder.app_sockets / "web.sock")), programs)
    if proxy is not None:
        _wait(proxy.trouble, programs, pause=0.02)
    # Only now: until here, a failed start prints nothing but its reason.
    engines.pass_on_lines()
    after_engines.callback(engines.pass_on_lines)
    with contextlib.suppress(OSError):  # a reader that has gone away
        print(greeting, flush=True)
        if sys.stdout.isatty():
            mark_keys_seen(folder)
    return _Service(folder, application, engines, programs, signals)


# -- the public port ----------------------------------------------------------------------------


def listen(settings: Mapping[str, Any]) -> list[socket.socket]:
    """The listening sockets of the application, in the order of its addresses. Raises
    ``StartError`` if nothing could listen there, naming who does."""
    if settings["site"]:
        # With an address of its own the proxy chooses its ports itself.
        return [listening_socket(bind) for bind in settings["binds"]]
    listeners = []
    for bind in settings["binds"]:
        try:
            listeners.append(listening_socket(bind))
        except OSError as error:
            if bind.startswith("unix:"):
                raise
            trouble = ports.reason(settings["host"], settings["port"], "PORT", error)
            raise StartError(trouble) from error
    return listeners


# -- the start ----------------------------------------------------------------------------------


def _wait_until_ready(web: HTTPConnection, programs: list[Program]) -> None:
    """Wait until a web process and everything that it needs answer."""
    # Asking /ready is work, for processes that are busy with starting: ask seldom.
    _wait(lambda: _trouble(web, "/health"), programs, pause=0.02)
    _wait(lambda: _trouble(web, "/ready"), programs, pause=0.1)


def _wait(trouble: Callable[[], str | None], programs: list[Program], pause: float) -> None:
    patience = time.monotonic() + _READY
    while problem := trouble():
        for program in programs:
            if not program.is_alive:
                raise StartError(
                    f"{program.name} ended while starting ({program.end}); the reason is above."
                )
        if time.monotonic() > patience:
            raise StartError(f"The service wasn't ready after {_READY:.0f} seconds: {problem}.")
        time.sleep(pause)


def _trouble(web: HTTPConnection, path: str) -> str | None:
    """What keeps the web process from answering 200, if anything does."""
    try:
        web.request("GET", path, headers={"Host": "localhost"})
        answer = web.getresponse()
        body = answer.read()
        if answer.status == 200:
            return None
        return str(json.loads(body).get("error", "it answers strangely"))
    except (OSError, HTTPException, ValueError):
        return "the web process doesn't answer"
    finally:
        web.close()
