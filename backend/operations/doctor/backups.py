"""Backups: whether there is a new one that was verified, and whether it is still in its place."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from backend.backups import history
from backend.kernel.doctor import DATABASE, Finding, check, fail, ok, warn
from backend.operations.backup import sources
from backend.operations.backup.problems import BackupError
from backend.settings.conf import service_settings
from objects.database import hold

_NOW = "script/manage backup --now makes one now."


@check("backups", needs=(DATABASE,), seconds=30)
def backups() -> Iterator[Finding]:
    """Whether backups are made as scheduled, and can be restored."""
    if not service_settings.BACKUP_SCHEDULE:
        yield ok("none are scheduled; BACKUP_TO and BACKUP_SCHEDULE do it (docs/backups.md)")
        return
    if hold.is_on():
        yield ok("none are made while the instance is held; script/manage resume ends that")
        return
    ahead = history.ahead()
    if ahead is not None:
        yield warn(
            f"A clock was ahead: a backup was made at {ahead.started_at:%Y-%m-%d %H:%M} UTC.",
            "It doesn't count until then. Correct the clock, and see that others are made.",
        )
    state = history.state()
    if state.last is not None and state.has_failed:
        at = f"{state.last.started_at:%Y-%m-%d %H:%M} UTC"
        yield fail(f"The last backup, {at}, failed: {state.last.note}", f"When corrected, {_NOW}")
    good, age = state.last_good, state.age
    if good is None or age is None:
        if state.last is None:
            yield warn("There is no backup yet.", _NOW)
        return
    readable = timedelta(seconds=round(age))
    if state.is_late:
        yield fail(
            f"The newest verified backup is {readable} old, more than two intervals of"
            " BACKUP_SCHEDULE.",
            "Look at the log of the jobs worker, whose queue it waits in.",
        )
    if good.note:
        yield warn(
            f"The newest backup is stored and was read back, but: {good.note}",
            "See docs/backups.md.",
        )
    try:
        place = sources.place()
        is_there = any(entry.name == good.name for entry in place.entries(good.name))
    except BackupError as error:
        yield fail(str(error), "Look at the settings BACKUP_….")
        return
    if not is_there:
        yield fail(f"{place.title} hasn't {good.name} any more.", _NOW)
    elif not state.is_late:
        yield ok(f"{good.name.rpartition('/')[2]}, {good.get_verification_display()}")
