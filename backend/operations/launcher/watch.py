"""Restarts the programs of ``script/server`` that exit: the engines, the application, the proxy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Protocol

from backend.instance.errors import StartError
from backend.kernel.process.children import reap_orphans
from backend.logs import plain
from backend.operations.processes.restarts import RestartHistory

_CHECK_INTERVAL: Final = 2.0  # seconds between two checks of the sockets
_MISSES: Final = 3
_REPAIR_PAUSE: Final = 30  # checks without a repair after one


class Program(Protocol):
    """Something that runs. ``start`` returns when it is usable, and calls ``on_idle`` again and
    again where that may take long. ``pids`` are the processes that it waits for; ``end`` is what
    has ended it. ``missing`` is what keeps others from connecting to it although it runs, such as a
    deleted socket; looking costs little."""

    name: str
    on_idle: Callable[[], None]

    def start(self) -> None: ...

    @property
    def pids(self) -> set[int]: ...

    @property
    def is_alive(self) -> bool: ...

    @property
    def end(self) -> str: ...

    @property
    def missing(self) -> str | None: ...


class Stoppable(Program, Protocol):
    """A program that can be stopped, and started again."""

    def stop(self) -> None: ...


class Replaceable(Program, Protocol):
    """A program of which a new one can be started before the present one ends."""

    def replace(self) -> None: ...


class _Watched:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.due: float | None = None  # when it is to be started, if it has exited
        self.is_starting = False
        self.misses = 0  # looks in a row at which it couldn't be connected to


class Watch:
    """The programs, in the order in which they need each other. What is restarted is reported in
    the folder ``reports``. Those in ``stoppable`` are restarted, too, if nothing can connect to
    them at three checks in a row."""

    def __init__(
        self, programs: Iterable[Program], reports: Path, stoppable: Sequence[Stoppable] = ()
    ) -> None:
        self._stoppable = stoppable
        self._next_check = 0.0
        self._watched = [_Watched(program) for program in programs]
        names = [each.program.name for each in self._watched]
        self._history = RestartHistory(names, plain.error, "launcher", reports)

    def look(self) -> None:
        """Start what has exited and is due. Call it several times a second, also while one of the
        programs is being started or replaced."""
        for each in self._watched:
            self._look(each)
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + _CHECK_INTERVAL
            for each in self._watched:
                self._check_missing(each)
            # What a dead application has left, for which no start may come for a long time.
            self._reap()
        self._history.report_changes()

    def is_unreachable(self, program: Program) -> bool:
        """Whether nothing could connect to the program at the last three checks."""
        return any(each.program is program and each.misses >= _MISSES for each in self._watched)

    def forget_misses(self, program: Program) -> None:
        """Forget the missed checks after a repair. The next ``_REPAIR_PAUSE`` ones don't count, so
        that a repair that doesn't help isn't repeated every few seconds."""
        for each in self._watched:
            if each.program is program:
                each.misses = -_REPAIR_PAUSE

    def _check_missing(self, each: _Watched) -> None:
        if each.is_starting or not each.program.is_alive:
            return
        missing = each.program.missing
        each.misses = each.misses + 1 if missing else 0
        if missing and each.misses >= _MISSES and each.program in self._stoppable:
            each.misses = 0
            plain.error("a program can't be reached and is stopped", role=each.program.name)
            each.is_starting = True
            try:
                next(program for program in self._stoppable if program is each.program).stop()
            finally:
                each.is_starting = False
            self._died(each, missing)

    def replace(self, program: Replaceable) -> None:
        """Replace one of the programs, running or not, and forget the deaths of the one before.
        ``look`` doesn't start it meanwhile. Raises as ``program.replace`` does; if it doesn't run,
        its restarts continue then."""
        each = next(each for each in self._watched if each.program is program)
        each.is_starting = True
        try:
            program.replace()
        finally:
            each.is_starting = False
            self._reap()
        each.due = None
        self._history.repaired(program.name)

    def _look(self, each: _Watched) -> None:
        if each.is_starting:
            return
        if each.program.is_alive:
            each.due = None
            return
        if each.due is None:
            self._died(each, each.program.end)
        if each.due is not None and each.due <= time.monotonic():
            self._start(each)

    def _died(self, each: _Watched, end: str) -> None:
        each.due = time.monotonic() + self._history.record(each.program.name, end)

    def _start(self, each: _Watched) -> None:
        each.is_starting = True
        try:
            each.program.start()
        except (StartError, SystemExit, OSError) as error:
            self._died(each, str(error) or "it can't be started")
        else:
            each.due = None
            self._reap()
        finally:
            each.is_starting = False

    def _reap(self) -> None:
        reap_orphans(set().union(*(each.program.pids for each in self._watched)))
