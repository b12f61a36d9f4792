"""Forks the processes of roles, and replaces those that die or hang.

The supervisor is single-threaded except for the log sender, which is reset in a fork, so forking is
safe. Its children share what it has loaded. A child gets SIGTERM when the supervisor dies.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from backend.kernel.process import liveness
from backend.kernel.process.children import adopt_orphans, die_with_parent, ended_by
from backend.kernel.process.liveness import Signs
from backend.logs.setup import get_logger
from backend.operations.processes.restarts import RestartHistory

SILENCE: Final = 60.0
"""Seconds without a heartbeat after which a process is considered hung."""
START_TIME: Final = 60.0
"""Seconds that the processes of a new application have for their first heartbeats."""
_START_ATTEMPTS: Final = 2
STOP_TIME: Final = 15.0
"""Seconds from SIGTERM to SIGKILL."""
_CHECK_INTERVAL: Final = 1.0  # seconds between two checks of the heartbeats
_START_INTERVAL: Final = 0.05  # seconds between two checks whether all processes have begun
_SUPERVISOR_LAG: Final = 5.0  # seconds between two checks that show that this process was held up
_ABORT_TIMEOUT: Final = 2.0  # seconds from SIGABRT, which writes the stacks, to SIGKILL

log = get_logger("processes")


@dataclass(frozen=True)
class Role:
    """``count`` processes that do ``work``. They begin to send heartbeats when they serve."""

    name: str
    work: Callable[[], None]
    count: int = 1


@dataclass
class _Child:
    """One process of a role; ``place`` is that of its heartbeats."""

    role: Role
    place: int
    pid: int = 0
    due: float = 0.0  # when it is to be started, if it doesn't run
    expected_at: float = 0.0  # when it must have begun to send heartbeats
    killed_at: float | None = None  # when it was found hung
    failed_starts: int = 0  # ends before the first heartbeat
    end: str = ""  # what ended the last process


class Supervisor:
    """The processes of some roles. What it restarts is reported in the folder ``reports``, if any;
    a process that sends no heartbeat for ``silence`` seconds is ended, and so is one that doesn't
    send its first one within ``start_time`` seconds more.

    ``announce`` is called once: with an empty text when every process has sent its first heartbeat,
    or with the reason when one of them ends twice before that, or needs more than ``start_time``
    seconds. Until all have begun, nothing is reported: this may be an application that replaces
    another one, whose report still holds.
    """

    def __init__(
        self,
        roles: Sequence[Role],
        reports: Path | None = None,
        *,
        silence: float = SILENCE,
        announce: Callable[[str], None] | None = None,
        start_time: float = START_TIME,
    ) -> None:
        places = [role for role in roles for _ in range(role.count)]
        self._children = [_Child(role, place) for place, role in enumerate(places)]
        self._reports = reports
        self._announce = announce
        self._start_time = start_time
        self._history = RestartHistory(
            [role.name for role in roles], log.error, "roles", None if announce else reports
        )
        self._signs = Signs(len(places))
        self._silence = silence
        self._stopping_since: float | None = None
        self._is_stopping = False

    def run(self) -> Callable[[], None] | None:
        """Keep the processes running until SIGTERM or SIGINT, and until all of them have ended.

        Returns None in the supervisor. In each forked process it returns the work of the role: call
        it after ``run`` has returned, so that nothing of the supervisor is left on the stack.
        """
        adopt_orphans()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        woken, waking = os.pipe()
        for end in (woken, waking):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        # What an earlier supervisor of these roles has reported no longer holds.
        self._history.report()
        began_at = checked_at = monotonic()
        while True:
            self._reap()
            if self._is_stopping:
                if not self._stop_children():
                    break
            else:
                work = self._start_due()
                if work is not None:
                    os.close(woken)
                    os.close(waking)
                    return work
                now = monotonic()
                self._announce_start(now - began_at)
                if now - checked_at > _SUPERVISOR_LAG:
                    self._reset_heartbeats()
                if now - checked_at >= _CHECK_INTERVAL:
                    self._kill_hung()
                    self._history.report_changes()
                    checked_at = now
            select.select([woken], [], [], self._pause())
            _empty(woken)
        signal.set_wakeup_fd(-1)
        return None

    # -- starting ---------------------------------------------------------------------------------

    def _start_due(self) -> Callable[[], None] | None:
        for child in self._children:
            if child.pid == 0 and child.due <= monotonic():
                work = self._fork(child)
                if work is not None:
                    return work
        return None

    def _fork(self, child: _Child) -> Callable[[], None] | None:
        self._signs.clear(child.place)
        child.killed_at = None
        self._set_start_deadline(child)
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal to stop that comes between the fork and the new handlers stays pending.
        blocked = signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
        )
        try:
            try:
                child.pid = os.fork()
            except OSError as error:  # too little memory, or too many processes
                self._record_end(child, f"no process: {error.strerror}")
                self._plan_restart(child, "a process can't be started", child.end)
                return None
            if child.pid != 0:
                return None
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            die_with_parent(signal.SIGTERM, parent)
            liveness.own(self._signs, child.place)
            return child.role.work
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _announce_start(self, seconds: float) -> None:
        """Announce that all processes have begun, or why one of them hasn't."""
        if self._announce is None:
            return
        late = [
            child
            for child in self._children
            if child.pid == 0 or not self._signs.has_begun(child.place)
        ]
        failed = next((child for child in late if child.failed_starts >= _START_ATTEMPTS), None)
        if failed is not None:
            trouble = f"The role {failed.role.name} doesn't start ({failed.end}); see the log."
        elif late and seconds > self._start_time:
            names = ", ".join(dict.fromkeys(child.role.name for child in late))
            trouble = f"No heartbeat within {self._start_time:.0f} seconds of the start: {names}."
        elif late:
            return
        else:
            trouble = ""
            self._history.report_to(self._reports)
        announce, self._announce = self._announce, None
        announce(trouble)

    # -- deaths -----------------------------------------------------------------------------------

    def _reap(self) -> None:
        for pid, status in _ended():
            child = next((child for child in self._children if child.pid == pid), None)
            if child is None:
                continue
            child.pid = 0
            if not self._is_stopping:
                self._record_end(child, self._hung(child) if child.killed_at else ended_by(status))
                self._plan_restart(child, "a process ended and is restarted", child.end, pid)

    def _record_end(self, child: _Child, end: str) -> None:
        child.end = end
        child.failed_starts += not self._signs.has_begun(child.place)

    def _hung(self, child: _Child) -> str:
        if self._signs.has_begun(child.place):
            return "it hung"
        return "it sent no heartbeat after its start"

    def _plan_restart(self, child: _Child, event: str, end: str, pid: int | None = None) -> None:
        pause = self._history.record(child.role.name, end, event, pid=pid)
        child.due = monotonic() + pause

    # -- heartbeats -------------------------------------------------------------------------------

    def _kill_hung(self) -> None:
        """Kill the processes that have been silent for too long."""
        for child in self._children:
            if child.pid == 0:
                continue
            if child.killed_at is not None:
                if monotonic() - child.killed_at > _ABORT_TIMEOUT:
                    _send(child.pid, signal.SIGKILL)
            elif self._is_silent(child):
                child.killed_at = monotonic()
                reason = self._hung(child)
                log.error("a process is ended", reason=reason, role=child.role.name, pid=child.pid)
                _send(child.pid, signal.SIGABRT)

    def _set_start_deadline(self, child: _Child) -> None:
        child.expected_at = monotonic() + self._start_time + self._silence

    def _is_silent(self, child: _Child) -> bool:
        is_late = not self._signs.has_begun(child.place) and monotonic() > child.expected_at
        return is_late or self._signs.age(child.place) > self._silence

    def _reset_heartbeats(self) -> None:
        """Count the silence of all processes from now on. This process itself was held up (by
        SIGSTOP, a paused virtual machine, or too little processor time), and so, probably, were its
        children. A suspended machine doesn't count: Linux's monotonic clock stands still then."""
        self._signs.reset()
        for child in self._children:
            self._set_start_deadline(child)

    # -- the end ----------------------------------------------------------------------------------

    def _stop(self, number: int, frame: object) -> None:
        self._is_stopping = True
        self._history.stop_reporting()

    def _stop_children(self) -> bool:
        """End the processes. Return whether some are left."""
        left = [child for child in self._children if child.pid]
        if self._stopping_since is None:
            self._stopping_since = monotonic()
            for child in left:
                _send(child.pid, signal.SIGTERM)
        elif monotonic() - self._stopping_since > STOP_TIME:
            for child in left:
                _send(child.pid, signal.SIGKILL)
        return bool(left)

    def _pause(self) -> float:
        """Return the seconds until the next action is due, if no signal comes."""
        waiting = [child.due - monotonic() for child in self._children if child.pid == 0]
        interval = _CHECK_INTERVAL if self._announce is None else _START_INTERVAL
        return max(0.0, min([interval, *([] if self._is_stopping else waiting)]))


def _ended() -> Iterator[tuple[int, int]]:
    """Yield the number of each child process that has ended, adopted ones included, and its exit
    code as ``os.waitstatus_to_exitcode`` gives it."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def _send(pid: int, number: int) -> None:
    # One that has ended meanwhile is reaped next.
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _empty(end: int) -> None:
    try:
        while os.read(end, 4096):
            pass
    except BlockingIOError:
        pass
