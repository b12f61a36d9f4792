"""Runs of backups: recording them, and the state that doctor, metrics and the admin show.

The functions that write are for the process that holds the lock of backups.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import close_old_connections, connection

from backend.backups.models import BackupRun
from backend.kernel.texts.redaction import mask_text
from backend.settings.conf import service_settings
from backend.settings.timetables import parse_cron

_STORED: Final = 300
"""Runs; those whose archives exist are stored in addition."""
_MAX_NOTE: Final = 1000  # characters
_KILLED_NOTE: Final = "The process was killed or lost its database."
_SENT_TOGETHER: Final = timedelta(seconds=30)
"""Messages of the schedule that are sent within this time are for one run."""
_MAX_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class State:
    """``last`` is the newest run that has finished, ``last_good`` the newest verified one.
    ``interval`` is the longest pause of the schedule in seconds, None without a schedule."""

    last: BackupRun | None
    last_good: BackupRun | None
    interval: float | None

    @property
    def has_failed(self) -> bool:
        """Return whether the newest run that has finished failed or was killed."""
        return self.last is not None and self.last.state != BackupRun.State.OK

    @property
    def age(self) -> float | None:
        """Return how old the newest verified backup is, in seconds."""
        if self.last_good is None:
            return None
        return (datetime.now(UTC) - self.last_good.started_at).total_seconds()

    @property
    def is_late(self) -> bool:
        """Return whether the newest verified backup is older than two intervals."""
        return self.interval is not None and self.age is not None and self.age > 2 * self.interval


def state() -> State:
    """Return what operators watch, by two short statements at most."""
    # Runs of a clock that was ahead say nothing of now.
    now = datetime.now(UTC)
    finished = BackupRun.objects.exclude(state=BackupRun.State.RUNNING).filter(started_at__lte=now)
    line = service_settings.BACKUP_SCHEDULE
    interval = None
    if line:
        interval = parse_cron(line).longest_pause(now).total_seconds()
    last = finished.first()
    is_good = last is None or last.state == BackupRun.State.OK
    last_good = last if is_good else finished.filter(state=BackupRun.State.OK).first()
    return State(last, last_good, interval)


def mark_killed() -> None:
    """Record the end of runs that are still ``running``: their processes were killed, since the
    caller holds the lock of backups."""
    BackupRun.objects.filter(state=BackupRun.State.RUNNING).update(
        state=BackupRun.State.KILLED, finished_at=datetime.now(UTC), note=_KILLED_NOTE
    )


def begin(sent_at: datetime | None = None) -> BackupRun:
    """Record the start of a run."""
    return BackupRun.objects.create(sent_at=sent_at, started_at=datetime.now(UTC))


def is_done(sent_at: datetime) -> bool:
    """Return whether a message of the schedule, or a later one, has had its run, or several that
    were killed. Messages may come twice, such as those of a worker that was killed. ``mark_killed``
    is called before."""
    sent = (sent_at - _SENT_TOGETHER, datetime.now(UTC))
    runs = BackupRun.objects.filter(sent_at__range=sent)
    return runs.exclude(state=BackupRun.State.KILLED).exists() or runs.count() >= _MAX_ATTEMPTS


def fail(run: BackupRun, reason: str) -> None:
    """Record that a run has failed."""
    run.state = BackupRun.State.FAILED
    run.note = mask_text(reason)[:_MAX_NOTE]
    _finish(run)


def succeed(run: BackupRun, verification: str, note: str = "") -> None:
    """Record that the archive of a run is in its place, and that it was verified."""
    run.state = BackupRun.State.OK
    run.verification = verification
    run.note = mask_text(note)[:_MAX_NOTE]
    _finish(run)


def _finish(run: BackupRun) -> None:
    run.finished_at = datetime.now(UTC)
    save(run)


def save(run: BackupRun) -> None:
    """Store a run. Between two steps of it the connection idles for hours, so one that was dropped
    meanwhile is replaced."""
    if not connection.in_atomic_block:
        close_old_connections()
    run.save()


def has_good(place: str) -> bool:
    """Return whether a verified archive was stored in a place."""
    return BackupRun.objects.filter(place=place, state=BackupRun.State.OK).exists()


def ahead() -> BackupRun | None:
    """Return a run that a clock which was ahead has recorded, if there is one."""
    return BackupRun.objects.filter(started_at__gt=datetime.now(UTC) + _SENT_TOGETHER).first()


def add_note(run: BackupRun, text: str) -> None:
    """Add a sentence to a run that has succeeded."""
    run.note = f"{run.note} {mask_text(text)}".strip()[:_MAX_NOTE]
    save(run)


def note_verification(name: str, result: str) -> None:
    """Add the result of reading an archive again to the note of its run, if there is one."""
    run = BackupRun.objects.filter(name=name, state=BackupRun.State.OK).first()
    if run is not None:
        add_note(run, f"Read again on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC: {result}")


def results() -> dict[str, str]:
    """Return how the newest run of each archive ended, by the name of the archive."""
    runs = BackupRun.objects.exclude(name="").order_by("id")
    return dict(runs.values_list("name", "state"))


def forget(existing: Collection[str]) -> None:
    """Remove the oldest runs, except those whose archives exist."""
    newest = BackupRun.objects.values_list("id", flat=True)[:_STORED]
    BackupRun.objects.exclude(id__in=list(newest)).exclude(name__in=existing).delete()
