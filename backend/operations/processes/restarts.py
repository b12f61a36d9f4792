"""When a process that has died is started again, and how its deaths are logged and reported."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic, time
from typing import Final

from backend.kernel.process import restart_report as report

WINDOW: Final = 60.0
"""Seconds for which a death counts."""
FAILING: Final = 5
"""Deaths within the window from which on a process is reported as failing."""
PAUSES: Final = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before the next start, by the number of earlier deaths in the window."""


class Restarts:
    """The deaths of one process, or of one group of equal processes."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._deaths: deque[float] = deque(maxlen=len(PAUSES))
        self._has_failed = False
        self.total = 0

    def died(self) -> float:
        """Record a death. Return the seconds until the process is to be started again."""
        has_failed = self.is_failing
        recent = self.recent
        self._deaths.append(self._now())
        self._has_failed = has_failed or self.recent >= FAILING
        self.total += 1
        return PAUSES[min(recent, len(PAUSES) - 1)]

    def repaired(self) -> None:
        """Forget its deaths: what runs now isn't what died."""
        self._deaths.clear()

    @property
    def recent(self) -> int:
        """Deaths within the window, as many as are remembered."""
        begin = self._now() - WINDOW
        return sum(death > begin for death in self._deaths)

    @property
    def is_failing(self) -> bool:
        """Whether the process died ``FAILING`` times within a window, and since then hasn't been
        repaired and hasn't run for a whole window without a death. A process that dies some seconds
        after each start would otherwise change its state with every restart."""
        return self._has_failed and self.recent > 0


class _Role:
    def __init__(self, now: Callable[[], float]) -> None:
        self.restarts = Restarts(now)
        self.last_end = ""
        self.last_time = 0.0
        self.is_reported_failing = False


class RestartHistory:
    """The restarts of one supervisor's roles since it was started, in the log and in its report.

    ``log_error`` writes a line of level error, from its event and facts. The report is the one of
    ``source`` in ``folder`` (``backend.kernel.process.restart_report``); without a folder there is
    none.
    """

    def __init__(
        self,
        roles: Iterable[str],
        log_error: Callable[..., object],
        source: str,
        folder: Path | None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._roles = {name: _Role(now) for name in roles}
        self._log_error = log_error
        self._source = source
        self._folder = folder

    def record(
        self, name: str, end: str, event: str = "a process ended and is restarted", **facts: object
    ) -> float:
        """Record what ended a process of the role. Return the seconds until its next start."""
        role = self._roles[name]
        role.last_end, role.last_time = end, time()
        pause = role.restarts.died()
        self._log_error(event, role=name, **facts, end=end, pause=pause)
        self.report()
        return pause

    def repaired(self, name: str) -> None:
        """Report the role as recovered: a new version of it runs."""
        self._roles[name].restarts.repaired()
        self.report()

    def report_changes(self) -> None:
        """Report roles that have recovered. Call it every second or so."""
        if any(
            role.is_reported_failing and not role.restarts.is_failing
            for role in self._roles.values()
        ):
            self.report()

    def report(self) -> None:
        """Replace the report by the present state, and log which roles have begun to fail."""
        restarted = []
        for name, role in self._roles.items():
            is_failing = role.restarts.is_failing
            if is_failing and not role.is_reported_failing:
                self._log_error(
                    "a role fails again and again", role=name, deaths=FAILING, within=WINDOW
                )
            role.is_reported_failing = is_failing
            if role.restarts.total:
                restarted.append(
                    report.Restarted(
                        name, role.restarts.total, is_failing, role.last_end, role.last_time
                    )
                )
        folder = self._folder
        if folder is not None:
            report.write(folder, self._source, restarted)

    def report_to(self, folder: Path | None) -> None:
        """Report to this folder from now on."""
        self._folder = folder
        self.report()

    def stop_reporting(self) -> None:
        """Leave the report to the next supervisor of the same roles. May be called by a signal
        handler."""
        self._folder = None
