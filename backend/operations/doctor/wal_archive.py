"""The archive of WAL: whether everything is in the place of backups, and since when it isn't."""

from __future__ import annotations

from collections.abc import Iterator
from time import time

import psycopg
from django.conf import settings

from backend.instance import wal_archive as state
from backend.instance.wal_archive import Part, State
from backend.kernel.doctor import DATABASE, Finding, check, fail, ok, warn
from backend.operations.wal_archive.server import connect

_OLD_BASE = 8 * 86400.0  # seconds
_FIRST_BASE = 3600.0
_RECENT = 86400.0
_MEGABYTE = 2**20
_ADVICE = "Look at BACKUP_TO and its place; what waits is archived when it works again."


@check("WAL archive", needs=(DATABASE,), seconds=12)
def wal_archive() -> Iterator[Finding]:
    """Whether the embedded server's WAL and files are archived."""
    now = time()
    if not settings.EMBEDDED_POSTGRES:
        yield ok("another tool archives this server")
        return
    try:
        current = state.read(settings.DATA_FOLDER)
    except state.StateError as error:
        yield fail(
            f"{error}.",
            "Let the service's account read it, or remove it: then archiving begins again with a"
            " copy of the database.",
        )
        return
    if not current.is_on:
        yield ok("off; BACKUP_TO and BACKUP_SCHEDULE switch it on (docs/wal-archive.md)")
        return
    if current.is_held:
        yield ok("nothing is archived while the instance is held; script/manage resume ends that")
        return
    findings = [*_findings(current, now)]
    yield from findings
    if not findings:
        yield ok(
            f"everything until {state.age(current.log, now):.0f} seconds ago, the copy of the"
            f" database is {state.age(current.bases, now) / 86400:.1f} days old,"
            f" {_waiting()}"
        )


def _findings(current: State, now: float) -> Iterator[Finding]:
    if state.age(current.log, now) > state.LATE:
        yield fail(
            f"{_last('WAL', current.log, now)}, {_waiting()}:"
            f" {current.log.trouble or 'the process archive does nothing'}",
            f"{_ADVICE} More than max_slot_wal_keep_size isn't retained: then archiving begins"
            " again with a copy of the database.",
        )
    elif current.log.trouble:
        yield warn(f"WAL waits to be archived: {current.log.trouble}", _ADVICE)
    yield from _base_findings(current.bases, now)
    if current.files.trouble:
        yield fail(f"{_last('Files', current.files, now)}: {current.files.trouble}", _ADVICE)
    if current.gap is not None and now - current.gap < _RECENT:
        yield warn(
            f"Archiving began again {(now - current.gap) / 3600:.1f} hours ago:"
            f" {current.gap_reason}. Some moments before that can't be restored.",
            "Nothing has to be done now. If the place was slow, it may be too slow for the writes.",
        )


def _base_findings(base: Part, now: float) -> Iterator[Finding]:
    last = _last("A copy of the database", base, now)
    is_old = base.done is not None and state.age(base, now) > _OLD_BASE
    if is_old or (base.since is not None and base.since < now - _FIRST_BASE):
        yield fail(f"{last}: {base.trouble or 'none was made since'}", _ADVICE)
    elif base.trouble or base.done is None:
        yield warn(
            f"{last}: {base.trouble or 'the first one is being made'}",
            "Nothing can be restored before the first one is stored.",
        )


def _last(what: str, part: Part, now: float) -> str:
    """Say when a part was last complete in the place."""
    if part.done is None:
        return f"{what} was never archived"
    return f"{what}: last archived {(now - part.done) / 60:.0f} minutes ago"


def _waiting() -> str:
    """Say how much WAL the server retains for the archive."""
    try:
        with connect(settings.DATA_FOLDER) as server:
            size = sum(slot.waiting for slot in server.slots())
    except psycopg.Error:
        return "an unknown amount waits"
    return f"{size // _MEGABYTE} MB wait"
