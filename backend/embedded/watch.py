"""Starts what ``script/server`` has started again when it ends by itself: the engines, the
application, the proxy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from backend.embedded import lines
from backend.embedded.children import reap_orphans
from backend.embedded.errors import StartError
from backend.processes import report
from backend.processes.restarts import FAILING, WINDOW, Restarts


class Program(Protocol):
    """Something that runs. ``start`` returns when it is usable, and calls ``meanwhile`` again and
    again where that may take long. ``pids`` are the processes that it waits for; ``end`` is what
    has ended it."""

    name: str
    meanwhile: Callable[[], None]

    def start(self) -> None: ...

    @property
    def pids(self) -> set[int]: ...

    @property
    def is_alive(self) -> bool: ...

    @property
    def end(self) -> str: ...


class _Watched:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.restarts = Restarts()
        self.due: float | None = None
        self.last_end = ""
        self.last_time = 0.0
        self.was_failing = False
        self.is_starting = False


class Watch:
    """The programs, in the order in which they need each other. What is restarted is reported in
    the folder ``reports``."""

    def __init__(self, programs: Iterable[Program], reports: Path) -> None:
        self._reports = reports
        self._watched = [_Watched(program) for program in programs]

    def look(self) -> None:
        """Start what has ended and is due. To be called several times a second, also while one of
        the programs is being started."""
        for each in self._watched:
            self._look(each)

    def _look(self, each: _Watched) -> None:
        if each.is_starting:
            return
        if each.due is None:
            if each.program.is_alive:
                if each.was_failing and not each.restarts.is_failing:
                    self._report()
                return
            self._died(each, each.program.end)
        if each.due is not None and each.due <= time.monotonic():
            self._start(each)

    def _died(self, each: _Watched, end: str) -> None:
        each.last_end, each.last_time = end, time.time()
        pause = each.restarts.died()
        each.due = time.monotonic() + pause
        lines.error(
            "a process ended and is restarted", role=each.program.name, end=end, pause=pause
        )
        self._report()

    def _start(self, each: _Watched) -> None:
        each.is_starting = True
        try:
            each.program.start()
        except (StartError, SystemExit, OSError) as error:
            self._died(each, str(error) or "it can't be started")
        else:
            each.due = None
            reap_orphans(set().union(*(watched.program.pids for watched in self._watched)))
        finally:
            each.is_starting = False

    def _report(self) -> None:
        restarted: list[report.Restarted] = []
        for each in self._watched:
            is_failing = each.restarts.is_failing
            name = each.program.name
            if is_failing and not each.was_failing:
                lines.error(
                    "a role fails again and again", role=name, deaths=FAILING, within=WINDOW
                )
            each.was_failing = is_failing
            if each.restarts.total:
                restarted.append(
                    report.Restarted(
                        name, each.restarts.total, is_failing, each.last_end, each.last_time
                    )
                )
        report.write(self._reports, "launcher", restarted)
