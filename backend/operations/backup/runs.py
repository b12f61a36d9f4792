"""One run of a backup: make an archive, store it in ``BACKUP_TO``, read it back, try it, and remove
the archives that needn't stay.

The archive is made in ``DATA_DIR`` first: the sizes of its parts, which are in front of them, are
known at their ends, and what is read back is compared with it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import Error as DatabaseError
from psycopg import sql

from backend.backups import history
from backend.backups.models import BackupRun
from backend.backups.retention import removable
from backend.kernel.connections import advisory_locks
from backend.kernel.texts.sizes import readable_size
from backend.logs.setup import get_logger
from backend.operations.backup import archive, creation, names, postgres, tables, trial
from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError
from backend.settings.conf import service_settings
from objects.database import hold

_PIECE: Final = 1024 * 1024  # bytes
_FOLDER: Final = "backup-work"
_MAX_TITLE: Final = 300  # characters of a place
_RESERVE: Final = 512 * 1024 * 1024  # bytes that stay free
_FILES: Final = "SELECT coalesce(sum(size), 0) FROM {}"
_DATABASE: Final = "SELECT pg_database_size(current_database())"

log = get_logger("backup")


def back_up(open_place: Callable[[], Place], sent_at: datetime | None = None) -> BackupRun | None:
    """Make a backup and return its run.

    ``sent_at`` is when the schedule sent the message; then return None if the message has had its
    run, another process makes a backup, or the instance is held. Without ``sent_at`` the last two
    raise ``BackupError``, and so does a backup that fails: its run is recorded, also if
    ``open_place`` fails. Nothing is removed unless the backup is verified.
    """
    if hold.is_on():
        if sent_at is not None:
            log.info("no backup is made: the instance is held")
            return None
        raise BackupError(
            "This instance was restored and is held, so it makes no backups: they would be mixed"
            " up with those of the instance that it is a copy of. script/manage resume ends that."
        )
    with postgres.connect() as own, _backup_lock(own) as is_free:
        if not is_free:
            if sent_at is not None:
                return None
            raise BackupError("Another process makes a backup at the moment.")
        history.mark_killed()
        if sent_at is not None and history.is_done(sent_at):
            log.info("no backup is made: this message of the schedule has had its run")
            return None
        run = history.begin(sent_at)
        try:
            place = open_place()
            with _work_folder() as folder:
                _make_and_verify(own, run, place, folder)
        except BackupError as error:
            _record_failure(run, str(error))
            raise
        except OSError as error:
            reason = f"{error.filename or _FOLDER}: {error.strerror or error}."
            _record_failure(run, reason)
            raise BackupError(reason) from error
        except Exception as error:
            _record_failure(run, f"internal error: {type(error).__name__}: {error}")
            raise
        _remove_old(run, place)
        return run


def _record_failure(run: BackupRun, reason: str) -> None:
    try:
        history.fail(run, reason)
    except DatabaseError as error:  # the caller raises the reason
        log.error("the failure of a backup can't be recorded", error=str(error))


def _make_and_verify(own: psycopg.Connection, run: BackupRun, place: Place, folder: Path) -> None:
    """Make, store and verify the archive, and record each step."""
    is_first = history.state().last_good is None
    existing = place.entries(names.FOLDER)
    is_scheduled = run.sent_at is not None
    if is_scheduled and not any(names.is_own(entry.name) for entry in existing):
        _check_is_not_empty(place)
    schema = tables.schema_of(own)
    if is_first and existing and not tables.used(own, schema):
        raise BackupError(
            f"This instance has no data, and {place.title} has backups: restore one of them with"
            " `script/manage restore latest`, or choose another BACKUP_TO."
        )
    _remove_leftovers(own, place)
    _check_room(own, schema, folder)
    name = names.name_of(run.started_at)
    made = creation.make(folder / "archive.tar")
    run.place = place.title[:_MAX_TITLE]
    run.name, run.size = name, made.path.stat().st_size
    run.rows, run.files = sum(made.manifest.tables.values()), made.manifest.files
    history.save(run)
    original = _Digest()
    place.write(name, original.copy_of(made.path))
    stored = _Digest()
    place.read(name, stored)
    if stored.result != original.result:
        raise BackupError(f"{place.title} returned other bytes of {name} than were stored.")
    archive.check(made.path)
    notes = [made.differences] if made.differences else []
    verification = BackupRun.Verification.CHECKSUMS
    if service_settings.BACKUP_VERIFY == "restore":
        try:
            trial.restore_into_trial_database(own, made.path)
            verification = BackupRun.Verification.RESTORED
        except trial.TrialSkipped as reason:
            notes.append(
                f"It wasn't restored for a trial: {reason}. If the server can't do it,"
                " BACKUP_VERIFY=checksums leaves the trial out."
            )
    history.succeed(run, verification, " ".join(notes))
    log.info("a backup was made", name=name, size=run.size, verification=verification, notes=notes)


def _check_is_not_empty(place: Place) -> None:
    """Raise ``BackupError`` if archives were stored in a place that has none."""
    if history.has_good(place.title[:_MAX_TITLE]):
        raise BackupError(
            f"{place.title} has none of the backups that were stored there: if it is a folder, its"
            " file system may not be mounted. `script/manage backup --now` begins again in it."
        )


def _remove_leftovers(own: psycopg.Connection, place: Place) -> None:
    """Remove what runs that were killed have left on the server and in the place."""
    try:
        trial.drop_leftover(own)
    except psycopg.Error as error:
        log.warning("the database of a killed trial can't be dropped", error=str(error))
    try:
        place.remove_unfinished(names.FOLDER, names.is_own)
    except BackupError as error:  # not every service that speaks S3 lists unfinished uploads
        log.warning("unfinished uploads can't be removed", error=str(error))


def _remove_old(run: BackupRun, place: Place) -> None:
    """Remove what needn't stay. The backup is made, so a failure is a note of its run."""
    if hold.is_on():  # since a restore has replaced the instance meanwhile
        return
    problems: list[str] = []
    try:
        archives = {
            entry.name: at
            for entry in place.entries(names.FOLDER)
            if (at := names.own_time(entry.name)) is not None
        }
        results = history.results()
        verified = [name for name, state in results.items() if state == BackupRun.State.OK]
        failed = results.keys() - verified
        keep = service_settings.BACKUP_KEEP
        for name in removable(archives, verified=verified, failed=failed, keep=keep):
            try:
                place.remove(name)
            except BackupError as error:
                problems.append(str(error))
                continue
            del archives[name]
            log.info("an old backup was removed", name=name)
        history.forget(archives.keys())
    except BackupError as error:
        problems.append(str(error))
    if problems:
        log.error("old backups can't be removed", count=len(problems), error=problems[0])
        history.add_note(run, f"Old backups can't be removed: {problems[0]}")


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
            f"{folder} has {readable_size(free)} left. An archive may need"
            f" {readable_size(needed)}, and {readable_size(_RESERVE)} have to stay free: make room,"
            " or move DATA_DIR."
        )


def _backup_lock(own: psycopg.Connection) -> AbstractContextManager[bool]:
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

    def copy_of(self, path: Path) -> Iterator[bytes]:
        """Yield the bytes of a file."""
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                self.write(piece)
                yield piece

    @property
    def result(self) -> tuple[int, str]:
        return self._size, self._digest.hexdigest()
