"""One run of a backup: make an archive, store it in ``BACKUP_TO``, read it back, try it, and remove
the archives that needn't stay.

The archive is made in ``DATA_DIR`` first: the sizes of its parts, which are in front of them, are
known at their ends, and what is read back is compared with it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from django.conf import settings
from django.template.defaultfilters import filesizeformat
from psycopg import sql

from backend.backups import history
from backend.backups.models import BackupRun
from backend.backups.retention import removable
from backend.kernel.connections import advisory_locks
from backend.kernel.texts.counted import counted
from backend.logs.setup import get_logger
from backend.operations.backup import archive, creation, names, postgres, tables, trial
from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError
from backend.settings.conf import service_settings
from objects.database import hold

_PIECE: Final = 1024 * 1024  # bytes
_FOLDER: Final = "backup-work"
_RESERVE: Final = 512 * 1024 * 1024  # bytes that stay free
_FILES: Final = "SELECT coalesce(sum(size), 0) FROM {}"
_DATABASE: Final = "SELECT pg_database_size(current_database())"

log = get_logger("backup")


def back_up(place: Place, sent_at: datetime | None = None) -> BackupRun | None:
    """Make a backup, and return its record.

    For a message that the schedule sent at ``sent_at``, return None if it has had its run, another
    process makes one, or the instance is held. Raises ``BackupError`` if the backup fails, or may
    not be made for one of these reasons. Everything in the place stays then.
    """
    if hold.is_on():
        if sent_at is not None:
            log.info("no backup is made: the instance is held")
            return None
        raise BackupError(
            "This instance was restored and is held, so it makes no backups: they would be mixed"
            " up with those of the instance that it is a copy of. script/manage resume ends that."
        )
    with postgres.connect() as own, _alone(own) as is_alone:
        if sent_at is not None and (not is_alone or history.is_done(sent_at)):
            return None
        if not is_alone:
            raise BackupError("Another process makes a backup at the moment.")
        run = history.begin()
        try:
            with _work_folder() as folder:
                _run(own, run, place, folder)
        except BackupError as error:
            history.fail(run, str(error))
            raise
        except OSError as error:
            reason = f"{error.filename or _FOLDER}: {error.strerror or error}."
            history.fail(run, reason)
            raise BackupError(reason) from error
        except Exception as error:
            history.fail(run, f"internal error: {type(error).__name__}: {error}")
            raise
        _remove_old(place)
        return run


def _run(own: psycopg.Connection, run: BackupRun, place: Place, folder: Path) -> None:
    """Fill in the record of a run as it comes along."""
    schema = tables.schema_of(own)
    is_first = history.state().last_good is None
    if is_first and place.entries(names.FOLDER) and not tables.used(own, schema):
        raise BackupError(
            f"This instance has no data, and {place.title} has backups: restore one of them with"
            " `script/manage restore latest`, or choose another BACKUP_TO."
        )
    _check_room(own, schema, folder)
    name = names.name_of(run.started_at)
    _remove_unfinished(place)
    made = creation.make(folder / "archive.tar")
    run.name, run.size = name, made.path.stat().st_size
    run.rows, run.files = sum(made.manifest.tables.values()), made.manifest.files
    run.save()
    original = _Digest()
    place.write(name, original.of(made.path))
    stored = _Digest()
    place.read(name, stored)
    if stored.result != original.result:
        raise BackupError(f"{place.title} returned other bytes of {name} than were stored.")
    archive.check(made.path)
    notes = _files_that_differ(made)
    verification = BackupRun.Verification.CHECKSUMS
    if service_settings.BACKUP_VERIFY == "restore":
        try:
            trial.restore_aside(own, made.path)
            verification = BackupRun.Verification.RESTORED
        except trial.Untried as reason:
            notes.append(f"It wasn't restored for a trial: {reason}.")
    history.succeed(run, verification, " ".join(notes))
    log.info("a backup was made", name=name, size=run.size, verification=verification, notes=notes)


def _files_that_differ(made: creation.Made) -> list[str]:
    """Sentences about files that aren't as they were uploaded; the log names these."""
    missing, changed = made.manifest.missing_files, made.changed_files
    notes = [f"Missing in storage: {counted(missing, 'file')}."] if missing else []
    return notes + ([f"Changed in storage: {counted(changed, 'file')}."] if changed else [])


def _remove_unfinished(place: Place) -> None:
    try:
        place.remove_unfinished(names.own_prefix())
    except BackupError as error:  # not every service that speaks S3 lists unfinished uploads
        log.warning("what killed backups have left can't be removed", error=str(error))


def _remove_old(place: Place) -> None:
    """Remove what needn't stay. The backup is made, so a failure is logged and not more."""
    if hold.is_on():  # since a restore has replaced the instance meanwhile
        return
    try:
        archives = {
            entry.name: at
            for entry in place.entries(names.FOLDER)
            if (at := names.own_time(entry.name)) is not None
        }
        results = history.results()
        good = [name for name, state in results.items() if state == BackupRun.State.OK]
        bad = results.keys() - good
        for name in removable(archives, good=good, bad=bad, keep=service_settings.BACKUP_KEEP):
            place.remove(name)
            del archives[name]
            log.info("an old backup was removed", name=name)
        history.forget(archives.keys())
    except BackupError as error:
        log.error("old backups can't be removed", error=str(error))


def _check_room(own: psycopg.Connection, schema: str, folder: Path) -> None:
    """Raise ``BackupError`` unless there is room for an archive: all files, and half of the
    database's size, since a dump has no indexes and is compressed."""
    files = own.execute(sql.SQL(_FILES).format(sql.Identifier(schema, "objects_file"))).fetchone()
    database = own.execute(_DATABASE).fetchone()
    assert files
    assert database
    needed = int(files[0]) + int(database[0]) // 2
    free = shutil.disk_usage(folder).free
    if free < needed + _RESERVE:
        raise BackupError(
            f"{folder} has {_readable(free)} left, and an archive may need {_readable(needed)}:"
            " make room, or move DATA_DIR."
        )


def _readable(size: int) -> str:
    return filesizeformat(size).replace("\xa0", " ")


def _alone(own: psycopg.Connection) -> AbstractContextManager[bool]:
    """Hold the lock of backups while the block runs, if it is free; whether it was."""

    def run(statement: str, parameters: Sequence[Any]) -> list[Any]:
        return own.execute(statement, parameters).fetchall()

    return advisory_locks.try_session(run, advisory_locks.BACKUPS)


@contextmanager
def _work_folder() -> Iterator[Path]:
    """An empty folder, also after a run that was killed; it is removed with what is in it."""
    folder = Path(settings.DATA_FOLDER.path, _FOLDER)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Digest:
    """Size and SHA-256 of bytes that pass by."""

    def __init__(self) -> None:
        self._digest, self._size = hashlib.sha256(), 0

    def write(self, piece: bytes, /) -> int:
        self._digest.update(piece)
        self._size += len(piece)
        return len(piece)

    def of(self, path: Path) -> Iterator[bytes]:
        """Yield the bytes of a file."""
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                self.write(piece)
                yield piece

    @property
    def result(self) -> tuple[int, str]:
        return self._size, self._digest.hexdigest()
