"""``script/server``: from a data folder to a running service, and back.

This process starts the engines, the application and the proxy, and starts again what ends by
itself. It loads nothing of the application. However it ends, by a signal or killed, everything else
ends too.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import psutil

from backend import environment
from backend.embedded import lines, pointers
from backend.embedded.application import Application, Refused, child_environment
from backend.embedded.children import STOPPING, adopt_orphans
from backend.embedded.engines import Engines
from backend.embedded.errors import StartError
from backend.embedded.folder import DataFolder, unusable
from backend.embedded.keys import ensure_keys
from backend.embedded.proxy import Proxy
from backend.embedded.watch import Program, Watch
from backend.probe import SocketConnection
from backend.processes import reloads, report
from backend.processes.link import SMALL
from backend.server.listening import listening_socket

ROOT = Path(__file__).resolve().parents[2]
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


def main() -> int:
    """Run the service until SIGTERM or Ctrl-C. The result is the process's exit status."""
    signals = _Signals()
    adopt_orphans()
    try:
        with contextlib.ExitStack() as stack:
            try:
                _run(stack, signals)
            except _Stopped:
                lines.info("stopping")
                raise
        return 0
    except StartError as error:
        print(f"script/server: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"script/server: {_refusal(error)}", file=sys.stderr)
        return 1
    except _Stopped:
        return 0


def _refusal(error: OSError) -> str:
    data = Path(os.environ.get("DATA_DIR", ""))
    if (
        isinstance(error.filename, str)
        and data.is_absolute()
        and Path(error.filename).is_relative_to(data)
    ):
        return unusable(Path(error.filename), error)
    return f"The service can't be started: {error}."


def _run(stack: contextlib.ExitStack, signals: _Signals) -> None:
    # The application reads .env itself, each time it is started.
    given = dict(os.environ)
    environment.read_file(Path(environment.text("ENV_FILE") or ROOT / ".env"))
    folder = DataFolder(ROOT / (environment.text("DATA_DIR") or ".data"))
    given["DATA_DIR"] = os.environ["DATA_DIR"] = str(folder.path)
    account = folder.prepare(environment.text("ENGINE_USER"))
    lock = stack.enter_context(folder.hold())
    new_keys = ensure_keys(folder)
    report.clear(folder.reports)
    variables = child_environment(given, folder.app_sockets)
    application = Application(variables, lock, listen)
    stack.callback(application.stop)
    # Every setting is read and judged here, before anything else is started.
    settings = application.begin()
    stack.callback(folder.forget)
    folder.record(pid=os.getpid(), address=settings["address"])
    stack.callback(pointers.forget, folder)
    pointers.point_to(folder)
    engines = Engines(
        folder,
        account,
        postgres=settings["postgres"],
        redis=settings["redis"],
        is_small=settings["profile"] == SMALL,
    )
    after_engines = stack.enter_context(contextlib.ExitStack())
    stack.enter_context(engines)
    # The application ends first, the engines later.
    stack.callback(lambda: application.stop(engines.pids))
    greeting = application.go_on(new_keys=new_keys)
    programs: list[Program] = [*engines.programs, application]
    if settings["site"]:
        proxy = Proxy(variables, settings, folder.app_sockets, folder.path / "caddy")
        stack.callback(proxy.stop)
        proxy.start()
        programs.append(proxy)
    _wait_until_ready(SocketConnection(str(folder.app_sockets / "web.sock")), programs)
    # Not before: why a start fails is to stand alone.
    engines.pass_on_lines()
    after_engines.callback(engines.pass_on_lines)
    with contextlib.suppress(OSError):  # a reader that has gone away
        print(greeting, flush=True)
    watch = Watch(programs, folder.reports)

    def look() -> None:
        signals.check()
        watch.look()
        engines.pass_on_lines()

    for program in programs:
        program.meanwhile = look
    reloads.make_folder(folder)
    while True:
        _reload(application, folder)
        look()
        time.sleep(_LOOK)


def _reload(application: Application, folder: DataFolder) -> None:
    """Replace the application if ``manage.py reload`` has requested it."""
    answers = reloads.take(folder)
    if not answers:
        return
    try:
        application.replace()
    except (StartError, SystemExit, OSError) as error:
        reason = error.reason if isinstance(error, Refused) else str(error)
        lines.error("the new application doesn't start; the present one goes on", end=reason)
        reloads.answer(answers, reason)
    else:
        lines.info("the application was replaced")
        reloads.answer(answers, "")


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
            raise StartError(_port_trouble(settings["host"], settings["port"], error)) from error
    return listeners


def _port_trouble(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use{_listener(port)}: stop it, or set PORT to another one."
    if error.errno == errno.EACCES:
        return f"Port {port} needs privileges that this account lacks: set PORT above 1023."
    return f"LISTEN_HOST={host} can't be listened on: {error.strerror or error}."


def _listener(port: int) -> str:
    with contextlib.suppress(psutil.Error, OSError):
        for found in psutil.net_connections("tcp"):
            if found.status == psutil.CONN_LISTEN and found.laddr.port == port and found.pid:
                return f" by {psutil.Process(found.pid).name()} (process {found.pid})"
    return ""


# -- the start ----------------------------------------------------------------------------------


def _wait_until_ready(web: HTTPConnection, programs: list[Program]) -> None:
    """Wait until a web process and everything that it needs answer."""
    # Asking /ready is work, for processes that are busy with starting: ask seldom.
    _wait(lambda: _trouble(web, "/health"), programs, pause=0.02)
    _wait(lambda: _trouble(web, "/ready"), programs, pause=0.1)


def _wait(trouble: Callable[[], str | None], programs: list[Program], pause: float) -> None:
    patience = time.monotonic() + _READY
    while said := trouble():
        for program in programs:
            if not program.is_alive:
                raise StartError(
                    f"{program.name} ended while starting ({program.end}); the reason is above."
                )
        if time.monotonic() > patience:
            raise StartError(f"The service wasn't ready after {_READY:.0f} seconds: {said}.")
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
