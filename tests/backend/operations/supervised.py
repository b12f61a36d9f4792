"""A supervisor for tests.

``python -m tests.backend.operations.supervised FOLDER SILENCE NAME=WORK …`` starts it.

Each process writes its number to ``FOLDER/NAME`` when it begins to work. The machine has room for
none at first, as often as ``REFUSED_FORKS`` says; ``START_TIME`` is the supervisor's.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from backend.kernel.process import liveness
from backend.operations.processes.supervisor import START_TIME, Role, Supervisor
from backend.server import process as server_process
from backend.server.context import Rules
from backend.server.limits import Limits
from backend.server.listeners import listening_socket
from functions.runtime.deadlines import raise_in


def serve() -> None:
    """Leave heartbeats until SIGTERM."""
    while True:
        liveness.leave()
        time.sleep(0.02)


def begin_late() -> None:
    """Leave no heartbeat the first time, and serve the second time."""
    place = Path(sys.argv[1]) / "begun-late"
    if not place.exists():
        place.touch()
        time.sleep(600)
    serve()


def hang() -> None:
    """Leave one heartbeat, and no other."""
    liveness.leave()
    time.sleep(600)


def wait() -> None:
    """Leave a heartbeat, and say that none is to be expected."""
    liveness.leave()
    liveness.pause()
    time.sleep(600)


def answer_requests() -> None:
    """Answer requests over a socket in the folder, in one thread, until SIGTERM.

    ``/hang`` never answers, and ``/end-threads`` ends the thread. ``/state`` needs no thread.
    """

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        path = environ["PATH_INFO"]
        if path == "/hang":
            time.sleep(600)
        elif path == "/end-threads":
            for thread in threading.enumerate():
                if thread.name.startswith("request") and thread.ident is not None:
                    raise_in(thread.ident, SystemExit)
        state = {
            "pid": os.getpid(),
            "is_hanging": liveness.is_hanging(),
            "ended_threads": liveness.ended_threads(),
        }
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(state).encode()]

    folder = Path(sys.argv[1])
    rules = Rules(
        application=application,
        is_proxy=lambda peer: True,
        client_address=lambda environ: "127.0.0.1",
        body_limit=lambda environ: 1024,
        answers_too_large=lambda environ: False,
        inline={"/state", "/end-threads"},
        apart=(),
        spool_folder=lambda: folder,
    )
    limits = Limits(stall_time=1.0)
    with listening_socket(f"unix:{folder / 'socket'}") as listener:
        server_process.serve(rules, limits, [listener], threads=1)


def fail() -> None:
    """End at once."""
    sys.exit(3)


def leave_orphan() -> None:
    """Start a process that outlives this one, and serve."""
    orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (Path(sys.argv[1]) / "orphan").write_text(str(orphan.pid))
    serve()


def ignore_sigterm() -> None:
    """Serve, and ignore all signals."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve()


def refuse_forks(times: int) -> None:
    fork, left = os.fork, [errno.EAGAIN] * times

    def refusing() -> int:
        if left:
            raise BlockingIOError(left.pop(), "Resource temporarily unavailable")
        return fork()

    os.fork = refusing


_WORKS = {
    work.__name__: work
    for work in (serve, begin_late, hang, wait, answer_requests, fail, leave_orphan, ignore_sigterm)
}


def main() -> None:
    folder = Path(sys.argv[1])

    def begin(name: str, work: Callable[[], None]) -> None:
        if work is serve:  # so that no test stops it before
            liveness.leave()
        fresh = folder / f"{name}.{os.getpid()}"
        fresh.write_text(str(os.getpid()))
        fresh.replace(folder / name)
        work()

    refuse_forks(int(os.environ.get("REFUSED_FORKS", "0")))
    roles = []
    for value in sys.argv[3:]:
        name, _, work = value.partition("=")
        roles.append(Role(name, partial(begin, name, _WORKS[work])))
    start_time = float(os.environ.get("START_TIME", START_TIME))
    output = Supervisor(
        roles, folder / "reports", silence=float(sys.argv[2]), start_time=start_time
    ).run()
    if output is not None:
        output()


if __name__ == "__main__":
    main()
