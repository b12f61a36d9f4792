"""Forks the processes of roles, and replaces those that die or hang.

The supervisor has one thread, but for that which sends its log records to Redis, and no connection
but that one, so that a fork is whole. Its children share what it has loaded. A child gets SIGTERM
when the supervisor dies.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time
from typing import Final

from backend.embedded.children import adopt_orphans, die_with_parent, ended_by
from backend.logs import get_logger
from backend.processes import report, signs
from backend.processes.restarts import FAILING, WINDOW, Restarts
from backend.processes.signs import Signs

SILENCE: Final = 60.0
"""Seconds without a sign of life after which a process counts as hanging."""
STOP_TIME: Final = 15.0
"""Seconds from SIGTERM to SIGKILL."""
_LOOK: Final = 1.0  # seconds between two looks at the signs
_LATE: Final = 5.0  # a look that is so late says that the machine was busy or asleep
_ABORTING: Final = 2.0  # seconds from SIGABRT, which writes the stacks, to SIGKILL

log = get_logger("processes")


@dataclass(frozen=True)
class Role:
    """``count`` processes that do ``work``. They begin to leave signs of life when they serve."""

    name: str
    work: Callable[[], None]
    count: int = 1


@dataclass
class _Child:
    """One process of a role; ``place`` is where it leaves its signs."""

    role: Role
    place: int
    pid: int = 0
    due: float = 0.0  # when it is to be started, if it doesn't run
    killed_at: float | None = None  # when it was found hanging


@dataclass
class _History:
    """The deaths of a role's processes."""

    restarts: Restarts = field(default_factory=Restarts)
    last_end: str = ""
    last_time: float = 0.0
    was_failing: bool = False


class Supervisor:
    """The processes of some roles. What it restarts is reported in the folder ``reports``, if any;
    a process that leaves no sign of life for ``silence`` seconds is ended."""

    def __init__(
        self, roles: Sequence[Role], reports: Path | None = None, *, silence: float = SILENCE
    ) -> None:
        places = [role for role in roles for _ in range(role.count)]
        self._children = [_Child(role, place) for place, role in enumerate(places)]
        self._history = {role.name: _History() for role in roles}
        self._signs = Signs(len(places))
        self._reports = reports
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
        looked_at = monotonic()
        while True:
            self._reap()
            if self._is_stopping:
                if not self._end():
                    break
            else:
                work = self._start_due()
                if work is not None:
                    os.close(woken)
                    os.close(waking)
                    return work
                now = monotonic()
                if now - looked_at > _LATE:
                    self._excuse()
                if now - looked_at >= _LOOK:
                    self._look()
                    looked_at = now
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
                self._plan_restart(
                    child, "a process can't be started", f"no process: {error.strerror}"
                )
                return None
            if child.pid != 0:
                return None
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            die_with_parent(signal.SIGTERM, parent)
            signs.own(self._signs, child.place)
            return child.role.work
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    # -- deaths -----------------------------------------------------------------------------------

    def _reap(self) -> None:
        for pid, status in _ended():
            child = next((child for child in self._children if child.pid == pid), None)
            if child is None:
                continue
            child.pid = 0
            if not self._is_stopping:
                end = ended_by(status) if child.killed_at is None else "it hung"
                self._plan_restart(child, "a process ended and is restarted", end, pid)

    def _plan_restart(self, child: _Child, event: str, reason: str, pid: int | None = None) -> None:
        history = self._history[child.role.name]
        history.last_end = reason
        history.last_time = time()
        pause = history.restarts.died()
        child.due = monotonic() + pause
        log.error(event, role=child.role.name, pid=pid, end=reason, pause=pause)
        self._report()

    def _report(self) -> None:
        restarted = []
        for name, history in self._history.items():
            is_failing = history.restarts.is_failing
            if is_failing and not history.was_failing:
                log.error("a role fails again and again", role=name, deaths=FAILING, within=WINDOW)
            history.was_failing = is_failing
            if history.restarts.total:
                restarted.append(
                    report.Restarted(
                        name,
                        history.restarts.total,
                        is_failing,
                        history.last_end,
                        history.last_time,
                    )
                )
        if self._reports is not None:
            report.write(self._reports, "roles", restarted)

    # -- signs of life ----------------------------------------------------------------------------

    def _look(self) -> None:
        """Kill what has been silent for too long; note what has recovered."""
        for child in self._children:
            if child.pid == 0:
                continue
            if child.killed_at is not None:
                if monotonic() - child.killed_at > _ABORTING:
                    _send(child.pid, signal.SIGKILL)
            elif self._signs.age(child.place) > self._silence:
                child.killed_at = monotonic()
                log.error("a process hangs and is ended", role=child.role.name, pid=child.pid)
                _send(child.pid, signal.SIGABRT)
        if any(
            history.was_failing and not history.restarts.is_failing
            for history in self._history.values()
        ):
            self._report()

    def _excuse(self) -> None:
        """Restart the clock of every process: the machine was suspended or overloaded, so their
        silence says nothing."""
        for child in self._children:
            if self._signs.age(child.place) > 0:
                self._signs.leave(child.place)

    # -- the end ----------------------------------------------------------------------------------

    def _stop(self, number: int, frame: object) -> None:
        self._is_stopping = True

    def _end(self) -> bool:
        """End the processes; whether some are left."""
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
        """Seconds until something has to be done, if no signal comes."""
        waiting = [child.due - monotonic() for child in self._children if child.pid == 0]
        return max(0.0, min([_LOOK, *([] if self._is_stopping else waiting)]))


def _ended() -> Iterator[tuple[int, int]]:
    """The processes that have ended, with their exit codes as ``os.waitstatus_to_exitcode`` gives
    them: our own, and those that were adopted."""
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
