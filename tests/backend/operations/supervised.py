"""A supervisor for tests.

``python -m tests.backend.operations.supervised FOLDER SILENCE NAME=WORK …`` starts it.

Each process writes its number to ``FOLDER/NAME`` when it begins to work. The machine has room for
none at first, as often as ``REFUSED_FORKS`` says.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from backend.kernel.process import liveness
from backend.operations.processes.supervisor import Role, Supervisor


def serve() -> None:
    """Leave heartbeats until SIGTERM."""
    while True:
        liveness.leave()
        time.sleep(0.02)


def hang() -> None:
    """Leave one heartbeat, and no other."""
    liveness.leave()
    time.sleep(600)


def wait() -> None:
    """Leave a heartbeat, and say that none is to be expected."""
    liveness.leave()
    liveness.pause()
    time.sleep(600)


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


_WORKS = {work.__name__: work for work in (serve, hang, wait, fail, leave_orphan, ignore_sigterm)}


def main() -> None:
    folder = Path(sys.argv[1])

    def begin(name: str, work: Callable[[], None]) -> None:
        fresh = folder / f"{name}.{os.getpid()}"
        fresh.write_text(str(os.getpid()))
        fresh.replace(folder / name)
        work()

    refuse_forks(int(os.environ.get("REFUSED_FORKS", "0")))
    roles = []
    for value in sys.argv[3:]:
        name, _, work = value.partition("=")
        roles.append(Role(name, partial(begin, name, _WORKS[work])))
    output = Supervisor(roles, folder / "reports", silence=float(sys.argv[2])).run()
    if output is not None:
        output()


if __name__ == "__main__":
    main()
