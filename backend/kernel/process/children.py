"""Starting processes that never outlive us.

A child gets the given signal from the kernel the moment that its parent dies, however the parent
died. It runs in a session of its own, so that Ctrl-C at the terminal reaches only the one that
stops everything in order.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

import psutil

from backend.instance.account import Account

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(*arguments: object) -> None:
    """Linux's ``prctl``. Other systems have nothing like it: there, children end only if their
    parent ends them. Raises ``OSError``: no process may outlive its parent unnoticed."""
    if sys.platform == "linux" and _libc.prctl(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl: {os.strerror(number)}")


def die_with_parent(death_signal: int, parent: int | None = None) -> None:
    """Ask the kernel to send us ``death_signal`` when our parent dies.

    ``parent`` is the parent's id as seen before the fork; when it is already gone the signal is
    sent at once.
    """
    _prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), death_signal)


def name_this(name: str) -> None:
    """Name this process as ``ps -o comm`` and ``top`` show it, with at most 15 characters."""
    _prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


# What may raise an exception here, to stop the launcher.
STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let signals that stop us wait until the block has ended. For starting a child: Python drops
    an exception that is raised while it forks, and the child's ``Popen`` would be lost, so it could
    only be ended by ``end_descendants``, not in order."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def before_exec(death_signal: int) -> Callable[[], None]:
    """For ``Popen(preexec_fn=…)``: unblock signals and tie the child to us."""
    parent = os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        die_with_parent(death_signal, parent)

    return prepare


def start(
    command: Sequence[str | Path],
    *,
    account: Account,
    log: IO[bytes],
    death_signal: int = signal.SIGTERM,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    """Start an engine as ``account``; its output goes to ``log``, its input is ``given``. Call it
    ``undisturbed``."""
    return subprocess.Popen(
        [str(part) for part in command],
        stdin=stdin or subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=folder or "/",
        env=dict(environment or PLAIN_ENVIRONMENT),
        start_new_session=True,
        umask=0o077,
        # One thread only at this point, so running Python between fork and exec is safe.
        preexec_fn=before_exec(death_signal),
        user=None if account.is_self else account.uid,
        group=None if account.is_self else account.gid,
        extra_groups=None if account.is_self else (),
    )


def stop(
    process: subprocess.Popen[bytes] | None, signals: Iterable[tuple[signal.Signals, float]]
) -> None:
    """End a process by each of these signals in turn, with so many seconds after each, and by
    SIGKILL when it is still there after the last. Does nothing if it has ended."""
    if process is None:
        return
    for number, seconds in signals:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            return
    process.kill()
    process.wait()


def unreachable(place: Path) -> str | None:
    """Why nothing can connect to the Unix socket at ``place``: it was deleted, or nothing listens
    to it. None if it accepts, or is too busy to. Doesn't wait."""
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        try:
            client.connect(str(place))
        except BlockingIOError:  # as many wait as there is room for
            return None
        except OSError as error:
            return f"its socket {place} can't be used: {error.strerror}"
    return None


def end_of(process: subprocess.Popen[bytes] | None) -> str:
    """What ended a process: a signal, or its status."""
    if process is None or process.returncode is None:
        return "unknown"
    return ended_by(process.returncode)


def ended_by(code: int) -> str:
    """The text for an exit code, which is negative for a signal."""
    if code >= 0:
        return f"status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def reap_orphans(but: Container[int]) -> None:
    """Let go of the adopted children that have ended. Those in ``but`` are waited for elsewhere."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess, ChildProcessError):
            if child.pid not in but and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def end_descendants(
    spare: Iterable[int] = (), patience: float = 10.0, how: int = signal.SIGTERM
) -> None:
    """End every descendant except those in ``spare``: politely, then by force."""
    spared = set(spare)
    processes = [
        process
        for process in psutil.Process().children(recursive=True)
        if not spared & _line(process)
    ]
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(how)
    _, stubborn = psutil.wait_procs(processes, timeout=patience)
    for process in stubborn:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stubborn, timeout=patience)


def _line(process: psutil.Process) -> set[int]:
    """The process and its ancestors, by number."""
    try:
        return {process.pid, *(parent.pid for parent in process.parents())}
    except psutil.NoSuchProcess:
        return set()


PLAIN_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
