"""Making an instance of what is archived: the newest copy of the database before a moment, and the
WAL from there to that moment.

The plan, the keys and all WAL are checked first. The cluster is recovered beside its place, the
hold is set in it, and it gets its place by one rename at the end. Until then the instance is what
it was, which is empty, and the same command begins again after a crash.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

import psycopg
from django.conf import settings
from django.core.files import File

from backend.instance.account import Account
from backend.instance.folder import DataFolder
from backend.instance.keys import mark_keys_seen
from backend.operations.backup import tables
from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError, UnreadableObject
from backend.operations.embedded import cluster
from backend.operations.embedded.binaries import POSTGRES_MAJOR, engine_binaries
from backend.operations.embedded.postgres import PostgreSQL
from backend.operations.keys.instance import NAMES, check_writable, keep, present_keys
from backend.operations.wal_archive import catalog
from backend.operations.wal_archive.bases import About, read_about
from backend.operations.wal_archive.catalog import SEGMENT, Plan
from backend.operations.wal_archive.log import read_piece
from backend.operations.wal_archive.process import has_files, own_place
from backend.operations.wal_archive.server import segment_name
from backend.operations.wal_archive.uploads import file_name
from backend.settings.areas.processes import Servers
from objects.files import storage

PREFIX: Final = "wal"
"""What ``--restore`` names, alone or with ``/INSTANCE``."""

_INCOMPLETE: Final = "postgres.restoring"
_READERS: Final = 8
_DAMAGE: Final = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error)
_PIECE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was restored. ``end`` is the moment up to which the instance has everything,
    ``environment_keys`` the keys that the environment decides about and has otherwise."""

    end: datetime
    files: int
    missing_files: int
    environment_keys: tuple[str, ...]


def instance_of(source: str) -> str | None:
    """Return the instance that ``--restore`` names, empty for the only one; None if this isn't the
    name of WAL."""
    kind, _, instance = source.partition("/")
    return instance if kind == PREFIX and (instance or source == PREFIX) else None


def restore(
    instance: str,
    until: datetime | None,
    *,
    is_held: bool = True,
    report: Callable[[str], object] = lambda line: None,
) -> Recovered:
    """Make this instance, whose data folder is empty and held by ``script/server``, what the
    archive has of an instance (the only one, if that is empty) at a moment, or at its end.

    Raises ``BackupError``, ``StartError`` and ``OSError``. Then the instance has no database, as
    before; files and keys may be stored already, and the next attempt replaces them.
    """
    folder: DataFolder = settings.DATA_FOLDER
    _check_empty(folder)
    check_writable()
    place, _ = own_place()
    entries = place.entries(catalog.ROOT)
    plan = catalog.plan(catalog.read(entry.name for entry in entries), instance, until)
    about = read_about(place, plan.lineage.base_name(plan.base))
    if about.postgres != POSTGRES_MAJOR:
        raise BackupError(
            f"The archive was made by PostgreSQL {about.postgres}, this is {POSTGRES_MAJOR}:"
            f" restore it with service {about.service}, and update then."
        )
    account = folder.prepare(Servers.ENGINE_USER.read())
    fresh = folder.engines / _INCOMPLETE
    cluster.end_server(fresh)
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        report(f"Reading the database of {plan.base.time:%Y-%m-%d %H:%M:%S} UTC and its WAL.")
        _fetch(place, plan, about, fresh, account)
        report(f"Recovering the database to {catalog.shown(until or plan.end)}.")
        source = plan.lineage.prefix.split("/")[1]
        with _server(folder, account, fresh, until):
            files = _settle(folder, is_held=is_held)
            report(f"Reading {len(files)} files.")
            missing = _restore_files(place, source, files)
        environment_keys = _keep_keys(about)
        mark_keys_seen(folder)
        if folder.postgres.exists():
            folder.postgres.rmdir()
        fresh.rename(folder.postgres)
        os.sync()
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return Recovered(until or plan.end, len(files) - missing, missing, tuple(environment_keys))


def _check_empty(folder: DataFolder) -> None:
    if not settings.EMBEDDED_POSTGRES:
        raise BackupError(
            "WAL is restored into the embedded PostgreSQL: leave out DATABASE_URL, or restore with"
            " the tool that archives that server."
        )
    if folder.postgres.exists() and any(folder.postgres.iterdir()):
        raise BackupError(
            f"The instance isn't empty: {folder.postgres} has a database. Restore into another"
            " DATA_DIR, or move that folder away."
        )


def _keep_keys(about: About) -> list[str]:
    """Store the archive's keys for the next start; return the names of those that the environment
    has otherwise."""
    present = present_keys()
    # Keys that the archive lacks are this instance's own no more.
    keys = {name: about.keys.get(name) for name in NAMES if name in about.keys or name in present}
    return [name for name in keep(keys) if present.get(name) != about.keys.get(name)]


# -- the cluster ----------------------------------------------------------------------------------


def _fetch(place: Place, plan: Plan, about: About, fresh: Path, account: Account) -> None:
    """Put the copy and its WAL into the folder. Raises ``BackupError`` if anything is damaged."""
    fresh.mkdir(mode=0o700)
    _extract(place, plan.lineage.copy_name(plan.base.start), fresh)
    wal = fresh / "pg_wal"
    wal.mkdir(exist_ok=True, mode=0o700)

    def store(piece: catalog.Span) -> None:
        content = read_piece(place, plan.lineage.piece_name(piece), piece)
        path = wal / segment_name(about.timeline, piece.start // SEGMENT)
        # Several threads may write into one segment, each what is in no other piece.
        number = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(number, "wb") as segment:
            segment.seek(piece.start % SEGMENT)
            segment.write(content)

    with ThreadPoolExecutor(_READERS) as pool:
        for _ in pool.map(store, plan.pieces):
            pass
    for path in wal.iterdir():
        if path.is_file():
            os.truncate(path, SEGMENT)
    (fresh / "recovery.signal").touch()
    for path in (fresh, *fresh.rglob("*")):
        account.own(path)


def _extract(place: Place, name: str, into: Path) -> None:
    """Extract a compressed tar file while it is read. Raises ``BackupError`` if it is damaged."""
    try:
        with (
            _decompressed(place, name) as content,
            tarfile.open(fileobj=content, mode="r|") as archive,
        ):
            archive.extractall(into, filter="data")
            while content.read(_PIECE):
                pass
    except (*_DAMAGE, OSError, ValueError) as error:
        # An error of this disk, or of a name that damage has made.
        if not isinstance(error, _DAMAGE) and _has_its_checksum(place, name):
            raise
        raise BackupError(f"{name} in {place.title} is damaged ({error}).") from error


def _has_its_checksum(place: Place, name: str) -> bool:
    try:
        with _decompressed(place, name) as content:
            while content.read(_PIECE):
                pass
    except _DAMAGE:
        return False
    return True


@contextmanager
def _decompressed(place: Place, name: str) -> Iterator[gzip.GzipFile]:
    """The content of a gzip file in a place while it is read. Unlike tarfile's own, gzip's reader
    compares the checksum, at its end. Raises what the place raises, and ``_DAMAGE``."""
    reading, writing = os.pipe()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            with os.fdopen(writing, "wb") as sink:
                place.read(name, sink)
        except BrokenPipeError:  # the block has ended before
            pass
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        with os.fdopen(reading, "rb") as source, gzip.open(source) as content:
            yield content
    finally:
        reader.join()
        if failures:
            raise failures[0]


@contextmanager
def _server(
    folder: DataFolder, account: Account, fresh: Path, until: datetime | None
) -> Iterator[None]:
    """Recover the cluster in ``fresh``, and run it within the block."""
    options = {
        # All WAL is in the cluster.
        "restore_command": "false",
        "recovery_target_action": "promote",
        # The server is ready when it has been recovered, and not before.
        "hot_standby": "off",
    }
    if until is not None:
        options["recovery_target_time"] = until.astimezone(UTC).isoformat()
    binaries = engine_binaries(account, folder.runtime)
    server = PostgreSQL(folder, account, binaries, options, data=fresh)
    server.lines.skip()
    try:
        server.start()
        yield
    finally:
        server.stop()


def _settle(folder: DataFolder, *, is_held: bool) -> list[tuple[str, str, str]]:
    """Do in the recovered database what a restored instance needs; return the name, type and
    digest of each of its files."""
    try:
        with psycopg.connect(folder.database_url, autocommit=True) as own:
            schema = tables.schema_of(own)
            unknown = sorted(
                set(tables.applied_migrations(own, schema)) - tables.known_migrations()
            )
            if unknown:
                raise BackupError(
                    "The archive is of a newer release of the service or of other applications;"
                    f" a migration that isn't known here: {unknown[0]}. Update first."
                )
            with own.transaction():
                for statement in tables.settling_copy(own, schema, is_held=is_held):
                    own.execute(statement)
            if not has_files():
                return []
            rows = own.execute("SELECT name, content_type, sha256 FROM objects_file WHERE complete")
            return [(str(name), str(kind), str(sha256)) for name, kind, sha256 in rows]
    except psycopg.Error as error:
        raise BackupError(f"The recovered database can't be used: {error}.") from error


# -- files ----------------------------------------------------------------------------------------


def _restore_files(place: Place, instance: str, files: list[tuple[str, str, str]]) -> int:
    """Store the files under their names; return how many the archive lacks or has damaged."""
    stored = {entry.name for entry in place.entries(f"{catalog.ROOT}{instance}/files/")}
    missing = 0
    for name, kind, sha256 in files:
        archived = file_name(instance, name)
        if archived not in stored or not _restore_file(place, archived, name, kind, sha256):
            missing += 1
    return missing


def _restore_file(place: Place, archived: str, name: str, kind: str, sha256: str) -> bool:
    with tempfile.TemporaryFile() as file:
        try:
            place.read(archived, file)
        except UnreadableObject:
            return False
        file.seek(0)
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            return False
        _store(file, name, kind)
    return True


def _store(file: IO[bytes], name: str, kind: str) -> None:
    size = file.tell()
    file.seek(0)
    content = File(file, name)
    content.size = size
    content.content_type = kind  # type: ignore[attr-defined]
    # A restore that was killed may have left it.
    with suppress(FileNotFoundError):
        storage.delete(name)
    storage.save(name, content)
