"""``script/server``: from a data folder to a running service, and back.

This process starts the engines itself, and the runner, which starts the rest. It waits for the
runner. However this process or the runner ends, by a signal or killed, everything else ends too.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import psutil

from backend import environment
from backend.embedded.binaries import caddy
from backend.embedded.children import adopt_orphans, before_exec, end_descendants
from backend.embedded.engines import Engines
from backend.embedded.errors import StartError
from backend.embedded.folder import DataFolder, unusable
from backend.embedded.keys import ensure_keys
from backend.embedded.words import greeting
from backend.probe import SocketConnection
from backend.reachability import check_servers

ROOT = Path(__file__).resolve().parents[2]
_READY = 120.0  # seconds
# glibc gives each thread heaps of its own, which keep what one large response took.
_MEMORY = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(256 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(1024 * 1024),
}


class _Stopped(BaseException):
    """SIGTERM or Ctrl-C."""


def main() -> int:
    """Run the service until it is told to stop. The result is the process's exit status."""
    _listen_for_signals()
    adopt_orphans()
    try:
        with contextlib.ExitStack() as stack:
            return _run(stack)
    except StartError as error:
        print(f"script/server: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        place = Path(error.filename or os.environ.get("DATA_DIR", "."))
        print(f"script/server: {unusable(place, error)}", file=sys.stderr)
        return 1
    except _Stopped:
        return 0


def _run(stack: contextlib.ExitStack) -> int:
    environment.read_file(Path(environment.text("ENV_FILE") or ROOT / ".env"))
    folder = DataFolder(ROOT / (environment.text("DATA_DIR") or ".data"))
    os.environ["DATA_DIR"] = str(folder.path)
    account = folder.prepare(environment.text("ENGINE_USER"))
    lock = stack.enter_context(folder.hold())
    new_keys = ensure_keys(folder)

    # Every setting is read and judged here, before anything is started.
    from backend import settings

    # With an address of its own the proxy chooses its ports itself.
    own_address = bool(environment.text("SITE_ADDRESS"))
    if not own_address:
        check_port(settings.LISTEN_HOST, settings.PORT)
    check_servers(settings)
    stack.callback(folder.forget)
    folder.record(pid=os.getpid(), address=settings.PUBLIC_URL)
    engines = stack.enter_context(
        Engines(folder, account, postgres=settings.EMBEDDED_POSTGRES, redis=settings.EMBEDDED_REDIS)
    )
    child_environment = _child_environment(folder, settings)
    login = _prepare(child_environment)
    runner = stack.enter_context(_runner(child_environment, lock, engines))
    web = SocketConnection(str(folder.app_sockets / "web.sock"))
    wait_until_ready(web, runner)
    if not own_address:
        wait_until_open(settings.LISTEN_HOST, settings.PORT, runner)
    print(greeting(settings, login, folder, new_keys), flush=True)
    while _still_running(runner):
        engines.check()
    raise StartError("A process ended; its reason is above. Everything is stopped.")


def _still_running(process: subprocess.Popen[bytes], pause: float = 0.5) -> bool:
    try:
        process.wait(pause)
    except subprocess.TimeoutExpired:
        return True
    return False


# -- signals ------------------------------------------------------------------------------------


def _listen_for_signals() -> None:
    def stop(number: int, frame: FrameType | None) -> NoReturn:
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)  # once is enough; stopping is under way
        raise _Stopped

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
        signal.signal(signal.SIGHUP, stop)


# -- what is started ----------------------------------------------------------------------------


def _child_environment(folder: DataFolder, settings: Any) -> dict[str, str]:
    sockets = folder.app_sockets
    scripts = Path(sys.executable).parent
    web = f"unix:{sockets / 'web.sock'}"
    programs = str(scripts)
    if environment.text("SITE_ADDRESS"):
        programs += f"{os.pathsep}{caddy().parent}"
    else:
        # No proxy: web processes listen on the public port themselves.
        host = f"[{settings.LISTEN_HOST}]" if ":" in settings.LISTEN_HOST else settings.LISTEN_HOST
        web += f",{host}:{settings.PORT}"
    return {
        **_MEMORY,
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": "backend.settings",
        "LISTEN_HOST": settings.LISTEN_HOST,
        "PORT": str(settings.PORT),
        "WEB_BIND": web,
        "REALTIME_BIND": f"unix:{sockets / 'realtime.sock'}",
        "REALTIME_HANDOFF": str(sockets / "handoff.sock"),
        "WEB_UPSTREAM": f"unix/{sockets / 'web.sock'}",
        "REALTIME_UPSTREAM": f"unix/{sockets / 'realtime.sock'}",
        "SITE_ADDRESS": environment.text("SITE_ADDRESS"),
        "CADDY_STORAGE": str(folder.path / "caddy"),
        "LOG_FORMAT": os.environ.get("LOG_FORMAT")
        or ("console" if sys.stderr.isatty() else "json"),
    }


def _prepare(child_environment: dict[str, str]) -> dict[str, str | None]:
    """Migrate and make the first staff user, in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "prepare", "--json"],
        cwd=ROOT,
        env=child_environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        preexec_fn=before_exec(signal.SIGTERM),
        check=False,
    )
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise StartError(f"`script/manage prepare` was ended by {name}; start the service again.")
    if done.returncode != 0:
        raise SystemExit(done.returncode)  # it has written the reason
    login: dict[str, str | None] = json.loads(done.stdout)
    return login


@contextlib.contextmanager
def _runner(
    child_environment: dict[str, str], lock: int, engines: Engines
) -> Iterator[subprocess.Popen[bytes]]:
    runner = subprocess.Popen(
        [sys.executable, "-m", "backend.embedded.runner", str(ROOT / "Procfile")],
        cwd=ROOT,
        env=child_environment,
        stdin=subprocess.DEVNULL,
        # The runner holds the data folder too, for as long as it takes to end its processes.
        pass_fds=(lock,),
        start_new_session=True,
        preexec_fn=before_exec(signal.SIGTERM),
    )
    try:
        yield runner
    finally:
        if runner.poll() is None:
            runner.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                runner.wait(30)
        end_descendants(spare=engines.pids)


# -- the public port ----------------------------------------------------------------------------


def check_port(host: str, port: int) -> None:
    """Raise if nothing could listen there, naming who does."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise StartError(_port_trouble(host, port, error)) from error


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


def wait_until_ready(web: HTTPConnection, runner: subprocess.Popen[bytes]) -> None:
    """Wait until the web process and everything that it needs answer."""
    # Asking /ready is work, for processes that are busy with starting: ask seldom.
    _wait(lambda: _trouble(web, "/health"), runner, pause=0.05)
    _wait(lambda: _trouble(web, "/ready"), runner, pause=0.2)


def wait_until_open(host: str, port: int, runner: subprocess.Popen[bytes]) -> None:
    """Wait until the proxy listens on the public port."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)

    def trouble() -> str | None:
        try:
            socket.create_connection((name, port), 5).close()
        except OSError:
            return f"nothing listens on port {port}"
        return None

    _wait(trouble, runner, pause=0.05)


def _wait(trouble: Callable[[], str | None], runner: subprocess.Popen[bytes], pause: float) -> None:
    patience = time.monotonic() + _READY
    while said := trouble():
        if runner.poll() is not None:
            raise StartError("A process ended while starting; the reason is above.")
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
