"""The trial of an archive: its database is restored into another one, which is dropped then.

The other database is on the instance's server, since only a server that the archive can be loaded
into proves that it can be.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
from django.conf import settings
from psycopg import sql

from backend.kernel.texts.sizes import readable_size
from backend.operations.backup import postgres, tables
from backend.operations.backup.archive import DATABASE, Archive
from backend.operations.backup.problems import BackupError

DATABASE_PREFIX: Final = "backup_trial_"
"""How the name of the other database begins; the number of the instance's follows."""
_OID_AND_SIZE: Final = (
    "SELECT oid, pg_database_size(oid) FROM pg_database WHERE datname = current_database()"
)
_FACTOR: Final = 2.5  # of the database's size: its tables, indexes and WAL


class TrialSkipped(Exception):
    """The server offers no database for the trial. The text says why."""


def restore_into_trial_database(own: psycopg.Connection, path: Path) -> None:
    """Restore the database of an archive into an empty one, and count the rows of each table.

    ``own`` holds the lock of backups, and ``drop_leftover`` was called. Raises ``TrialSkipped``,
    and ``BackupError`` if the archive can't be restored.
    """
    with Archive(path) as archive, _empty_database(own, archive) as name:
        schema = archive.manifest.schema
        postgres.replace(
            postgres.programs(own.info.server_version // 10_000),
            schema,
            archive.pieces(DATABASE),
            before=(),
            after=tables.counting(schema, archive.manifest.tables),
            database=name,
        )


def drop_leftover(own: psycopg.Connection) -> None:
    """Drop the database of a run that was killed, if there is one. Raises ``psycopg.Error``.

    ``own`` holds the lock of backups.
    """
    name, _ = _name_and_size(own)
    _drop(own, name)


@contextmanager
def _empty_database(own: psycopg.Connection, archive: Archive) -> Iterator[str]:
    name, size = _name_and_size(own)
    _check_room(size)
    create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'")
    try:
        own.execute(create.format(sql.Identifier(name)))
    except psycopg.Error as error:
        raise TrialSkipped(f"no other database can be made: {_reason(error)}") from error
    try:
        _prepare(name, archive)
        yield name
    finally:
        _drop(own, name)


def _name_and_size(own: psycopg.Connection) -> tuple[str, int]:
    """Return the name of the trial's database, and the size of the instance's in bytes."""
    row = own.execute(_OID_AND_SIZE).fetchone()
    assert row
    return f"{DATABASE_PREFIX}{row[0]}", int(row[1])


def _drop(own: psycopg.Connection, name: str) -> None:
    own.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _prepare(name: str, archive: Archive) -> None:
    try:
        with postgres.connect(name) as other:
            schema = sql.Identifier(archive.manifest.schema)
            other.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            for extension in archive.manifest.extensions:
                statement = sql.SQL("CREATE EXTENSION IF NOT EXISTS {}")
                other.execute(statement.format(sql.Identifier(extension)))
    except BackupError as error:
        raise TrialSkipped(f"the other database can't be used: {str(error).rstrip('.')}") from error


def _check_room(size: int) -> None:
    """Raise ``TrialSkipped`` if the embedded engine's disk, which others need too, might become
    full."""
    if not settings.EMBEDDED_POSTGRES:
        return
    needed = int(size * _FACTOR)
    if shutil.disk_usage(settings.DATA_FOLDER.engines).free < needed:
        raise TrialSkipped(f"it needs {readable_size(needed)} of free disk space")


def _reason(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0]
