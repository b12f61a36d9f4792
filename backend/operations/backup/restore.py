"""Making an instance what an archive says, all of it or nothing.

First everything is checked: the archive's checksums, its format, that this release knows its
migrations, that the instance has nothing to lose. Then the files are stored, whose names nothing
refers to yet, then the database is replaced in one transaction. Until that commits the instance is
what it was, and if anything fails it stays so; files that were added are taken away again.
Afterwards come the keys, the migrations that the archive hasn't, the indexes that were being built
when it was made, and the secrets of an instance with another ``SECRET_KEY``: each of them can be
repeated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connections

from backend.instance.keys import mark_keys_seen
from backend.kernel.connections import advisory_locks
from backend.operations.backup import archive as archives
from backend.operations.backup import files, postgres, tables
from backend.operations.backup.archive import Archive, Manifest
from backend.operations.backup.problems import BackupError
from backend.operations.keys.instance import FALLBACKS, NAMES, check_writable, keep, present_keys
from backend.operations.preparation import remove_invalid_password

_LISTED = 5


@dataclass(frozen=True, slots=True)
class Restored:
    """What has been restored, and what is left to do.

    ``keys`` is whether the archive's keys are kept by the instance now, except those in
    ``given_keys``: the environment decides about these, and has others. ``unreadable`` counts
    secrets that can't be read with this instance's ``SECRET_KEY``; ``files_left`` files of before
    that storage didn't let go. ``indexes`` has a line for each declared index that the archive
    lacked, ``index_problem`` a sentence if some couldn't be built. ``password_file`` had a password
    of the admin that isn't valid any more, and was removed.
    """

    manifest: Manifest
    keys: bool
    given_keys: tuple[str, ...]
    unreadable: int
    files_left: int
    indexes: tuple[str, ...]
    index_problem: str
    password_file: Path | None


def restore(
    path: Path, *, overwrite: bool = False, with_keys: bool = True, is_held: bool = True
) -> Restored:
    """Replace this instance's database and files by the archive's.

    Without ``overwrite`` the instance has to be a fresh one. With ``with_keys`` the keys that the
    archive has are kept for the next start. With ``is_held`` nothing goes out of the instance until
    it is resumed (``objects.database.hold``). Raises ``BackupError``; the instance is as before
    then, except where the text says otherwise.
    """
    with Archive(path) as archive:
        manifest = archive.check()
        archived_keys = _keys(archive)
        if with_keys and archive.has(archives.KEYS):
            check_writable()
        with postgres.connect() as own, _alone(own):
            schema = tables.schema_of(own)
            _check(own, schema, manifest, overwrite)
            programs = postgres.programs(max(own.info.server_version // 10_000, manifest.postgres))
            postgres.contents(programs, archive.pieces(archives.DATABASE))
            former = set(tables.file_names(own, schema))
            with _files(archive):
                _replace(programs, schema, archive, is_held=is_held)
            with suppress(psycopg.Error):  # autovacuum does it too, later
                own.execute("ANALYZE")
        files_left = files.take_away(former - _names(archive)) if former else 0
    return _settle(manifest, archived_keys, with_keys, files_left)


def _check(own: psycopg.Connection, schema: str, manifest: Manifest, overwrite: bool) -> None:
    """Raise what keeps the archive from being restored here."""
    if manifest.schema != schema:
        raise BackupError(
            f"The archive's tables are in the schema {manifest.schema}, this instance's in "
            f"{schema}: DATABASE_URL chooses it by options=-csearch_path."
        )
    unknown = sorted(set(manifest.migrations) - tables.known_migrations())
    if unknown:
        raise BackupError(
            f"The archive is of a newer release (service {manifest.service}) or of other "
            f"applications; migrations that aren't known here: {_some(unknown)}. Update first."
        )
    lacking = sorted(set(manifest.extensions) - set(tables.extensions(own)))
    if lacking:
        raise BackupError(
            f"The database lacks extensions that the archive's had: CREATE EXTENSION for "
            f"{_some(lacking)} first."
        )
    strange = tables.strangers(own, schema)
    if strange:
        raise BackupError(
            f"The database has tables that aren't this service's: {_some(strange)}. Restoring "
            "would remove them: use a database of its own."
        )
    used = tables.used(own, schema)
    if used and not overwrite:
        raise BackupError(
            "The instance isn't empty, so nothing was changed: it has rows in "
            f"{_some([f'{name} ({rows})' for name, rows in used.items()])}. --overwrite gives up "
            "what it has; restore into a fresh instance otherwise."
        )


def _some(names: list[str]) -> str:
    unnamed = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {unnamed} more" if unnamed > 0 else "")


@contextmanager
def _alone(own: psycopg.Connection) -> Iterator[None]:
    """Neither another restore nor ``prepare`` of another machine runs meanwhile."""

    def run(sql: str, parameters: Sequence[Any]) -> list[Any]:
        return own.execute(sql, parameters).fetchall()

    with advisory_locks.try_session(run, advisory_locks.PREPARATION) as is_held:
        if not is_held:
            raise BackupError("Another process prepares or restores this instance at the moment.")
        yield


@contextmanager
def _files(archive: Archive) -> Iterator[None]:
    """Store the archive's files; those that are new go again if what follows fails."""
    added: list[str] = []
    try:
        files.put_back(archive, added)
        # Files have to be on the disk before rows say so.
        os.sync()
        yield
    except BaseException:
        files.take_away(added)
        raise


def _replace(programs: postgres.Programs, schema: str, archive: Archive, *, is_held: bool) -> None:
    """One transaction: the old tables go, the archive's come."""
    # Django's own connection would hold on to what is dropped.
    connections.close_all()
    postgres.replace(
        programs,
        schema,
        archive.pieces(archives.DATABASE),
        before=tables.dropping(schema),
        after=tables.settling(schema, archive.manifest.tables, is_held=is_held),
    )


def _names(archive: Archive) -> set[str]:
    return {line.name for line in archive.lines()}


def _keys(archive: Archive) -> dict[str, str]:
    if not archive.has(archives.KEYS):
        return {}
    try:
        stored = msgspec.json.decode(archive.read(archives.KEYS), type=dict[str, str])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BackupError(f"The keys of the archive can't be read: {error}.") from None
    return {name: value for name, value in stored.items() if name in NAMES and value}


def _settle(
    manifest: Manifest, archived_keys: dict[str, str], with_keys: bool, files_left: int
) -> Restored:
    """Keys, migrations, secrets: what is left once the database and the files are the archive's."""
    from objects.definitions import registry
    from objects.reencryption import reencrypt_all, unreadable

    registry.forget_all()
    environment_keys: list[str] = []
    if archived_keys and with_keys:
        # Keys that the archive hasn't are this instance's own no more.
        keys = {
            name: archived_keys.get(name)
            for name in NAMES
            if name in archived_keys or name in present_keys()
        }
        try:
            environment_keys = [
                name for name in keep(keys) if present_keys().get(name) != archived_keys.get(name)
            ]
            mark_keys_seen(settings.DATA_FOLDER)
        except OSError as error:
            raise BackupError(
                f"Database and files are restored, but the keys can't be kept: {error.strerror}."
            ) from error
    try:
        call_command("prepare", verbosity=0)
    except Exception as error:
        raise BackupError(
            "Database and files are restored, but not brought up to this release: "
            f"{type(error).__name__}. `script/manage prepare` says more, and goes on."
        ) from error
    indexes, index_problem = _build_indexes()
    lost = 0
    secret = present_keys()["SECRET_KEY"]
    if not archived_keys:
        lost = unreadable()
    elif not with_keys or "SECRET_KEY" in environment_keys:
        former = [archived_keys.get("SECRET_KEY", ""), *archived_keys.get(FALLBACKS, "").split(",")]
        lost = reencrypt_all([key for key in former if key and key != secret]).unreadable
    return Restored(
        manifest,
        bool(archived_keys) and with_keys,
        tuple(environment_keys),
        lost,
        files_left,
        tuple(indexes),
        index_problem,
        remove_invalid_password(settings.DATA_DIR),
    )


def _build_indexes() -> tuple[list[str], str]:
    """Make the indexes those that classes declare: a dump lacks those that were being built.

    Return a line for each that is built or dropped, or can't be, and a sentence if some can't.
    """
    output, problem = StringIO(), ""
    try:
        call_command("build_indexes", stdout=output, stderr=output)
    except CommandError as error:
        problem = str(error)
    return output.getvalue().splitlines(), problem
