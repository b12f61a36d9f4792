"""Runs of the checks of ``doctor``, away from requests, and their stored outcomes.

A worker runs them every quarter of an hour. Staff may have the web process run them at once, in a
thread: this also works while no worker runs. One process of the deployment runs them at a time.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import close_old_connections, connections, transaction
from django.db.models import Q

from backend.kernel import doctor
from backend.kernel.doctor import Finding, Level
from backend.logs.setup import get_logger
from backend.overview.models import Checkup

_SECONDS: Final = 90.0
"""For all checks of a run; the remaining ones are skipped then."""
_CLAIM: Final = timedelta(minutes=2)
"""How long a run counts as one that may still finish."""
_PAUSE: Final = timedelta(seconds=10)
"""Between the end of a run and the next one."""
_ROW: Final = 1
LEVELS: Final[tuple[Level, ...]] = ("fail", "warn", "skipped", "ok")

log = get_logger("advisor")


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding of the latest run, with its check and the part of the service that it is about."""

    check: str
    group: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Report:
    """The latest run that has finished, and whether another one is running."""

    finished_at: datetime | None
    node: str
    entries: list[Entry]
    is_running: bool

    def of_level(self, level: Level) -> list[Entry]:
        """Return the entries of a level, by the part of the service."""
        entries = [entry for entry in self.entries if entry.finding.level == level]
        return sorted(entries, key=lambda entry: (entry.group, entry.check))


def latest(now: datetime | None = None) -> Report:
    """Return the latest report; it has no entries if no run has finished yet."""
    row = Checkup.objects.filter(pk=_ROW).first() or Checkup(id=_ROW)
    now = now or datetime.now(UTC)
    is_running = row.claimed_at is not None and now < row.claimed_at + _CLAIM
    entries = [
        Entry(outcome["check"], outcome["group"], Finding(**finding))
        for outcome in row.outcomes
        for finding in outcome["findings"]
    ]
    return Report(row.finished_at, row.node, entries, is_running)


def run() -> bool:
    """Run all checks and store their outcomes; return False if another process runs them."""
    if not _claim():
        return False
    _run_claimed()
    return True


def start() -> bool:
    """Run all checks in a thread, when the open transaction is committed; return False if they are
    running or have just been run."""
    if not _claim():
        return False

    def work() -> None:
        try:
            _run_claimed()
        except Exception:
            log.exception("the checks couldn't be run")
        finally:
            connections.close_all()  # this thread's

    thread = threading.Thread(target=work, name="checkup", daemon=True)
    transaction.on_commit(thread.start)
    return True


def _claim() -> bool:
    now = datetime.now(UTC)
    Checkup.objects.get_or_create(id=_ROW)
    is_free = Q(claimed_at=None) | Q(claimed_at__lt=now - _CLAIM)
    has_paused = Q(finished_at=None) | Q(finished_at__lt=now - _PAUSE)
    free = Checkup.objects.filter(is_free, has_paused, id=_ROW)
    return free.update(claimed_at=now) == 1


def _run_claimed() -> None:
    outcomes: list[dict[str, Any]] = [
        {
            "check": outcome.check,
            "group": doctor.group_of(outcome.check).replace("_", " ").capitalize(),
            "findings": [asdict(finding) for finding in outcome.findings],
        }
        for outcome in doctor.run_all(seconds=_SECONDS)
    ]
    if not transaction.get_connection().in_atomic_block:
        close_old_connections()
    Checkup.objects.filter(id=_ROW).update(
        claimed_at=None,
        finished_at=datetime.now(UTC),
        node=socket.gethostname(),
        outcomes=outcomes,
    )
