"""Making an archive of the whole instance while it works.

Database and list of files are of one moment: they are read in one snapshot. The bytes of the files
come afterwards. They never change under a name and names never come twice, so everything
that the database refers to is the same when it is copied later; the other way round a file that was
uploaded between the two would be missing. A file that is deleted meanwhile is written down as
missing, and would have been gone a moment later anyway.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec
from psycopg import sql

from backend import __version__
from backend.instance.folder import sync_folder
from backend.kernel.texts.counted import counted
from backend.operations.backup import archive, postgres, tables
from backend.operations.backup.archive import Manifest, Part, Writer
from backend.operations.backup.files import Known, put_in
from backend.operations.backup.problems import BackupError
from backend.operations.keys.instance import present_keys
from backend.settings.conf import service_settings

_PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Made:
    """An archive, what it says about itself, and how many of its files aren't what was uploaded."""

    path: Path
    manifest: Manifest
    changed_files: int
    has_keys: bool

    @property
    def differences(self) -> str:
        """Return sentences about files that aren't as they were uploaded, or an empty text. The
        log names these files."""
        states = (("Missing", self.manifest.missing_files), ("Changed", self.changed_files))
        sentences = (f"{state} in storage: {counted(n, 'file')}." for state, n in states if n)
        return " ".join(sentences)


def make(target: Path, *, with_keys: bool = True) -> Made:
    """Write an archive to ``target``: a file that isn't there yet, or a folder.

    Only its owner may read it. It is there when it is complete. Raises ``BackupError``, and
    ``OSError`` when it can't be written.
    """
    begun = datetime.now(UTC)
    path = _path(target, begun)
    fresh = path.with_name(f"{path.name}.part")
    try:
        number = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BackupError(
            f"{fresh} is there: another backup is writing it, or was killed. Remove it then."
        ) from None
    try:
        with os.fdopen(number, "w+b") as file:
            manifest, changed = _write(file, begun, with_keys)
        fresh.rename(path)
        sync_folder(path.parent)
    finally:
        fresh.unlink(missing_ok=True)
    return Made(path, manifest, changed, with_keys)


def _path(target: Path, begun: datetime) -> Path:
    if target.is_dir() or (not target.exists() and target.suffix != ".tar"):
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = target / f"{service_settings.APP_ID}-{begun:%Y%m%dT%H%M%SZ}.tar"
    if target.exists():
        raise BackupError(f"{target} is there already.")
    return target


def _write(file: IO[bytes], begun: datetime, with_keys: bool) -> tuple[Manifest, int]:
    writer = Writer(file)
    parts: dict[str, Part] = {}
    with tempfile.TemporaryFile() as file_rows, tempfile.TemporaryFile() as lines:
        with postgres.connect() as own:
            schema = tables.schema_of(own)
            server = own.info.server_version // 10_000
            programs = postgres.programs(server)
            with own.transaction():
                own.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                row = own.execute("SELECT pg_export_snapshot()").fetchone()
                assert row
                migrations = tables.applied_migrations(own, schema)
                if not migrations:
                    raise BackupError("There is nothing to back up: the database is empty.")
                dump = postgres.dump(programs, schema, row[0])
                parts[archive.DATABASE] = writer.add(archive.DATABASE, dump)
                rows = tables.counts(own, schema)
                extensions = tables.extensions(own)
                copy = sql.SQL(
                    "COPY (SELECT to_json(f) FROM (SELECT name, content_type, size, sha256 FROM {}"
                    " ORDER BY created_at, name) f) TO STDOUT"
                ).format(sql.Identifier(schema, "objects_file"))
                with own.cursor().copy(copy) as listed:
                    for line in listed:
                        file_rows.write(bytes(line))
        # Copying files may take long, and holds nothing in the database.
        copied = put_in(writer, _known(file_rows), lines)
        parts[archive.FILES] = writer.add(archive.FILES, _pieces(lines))
    if with_keys:
        parts[archive.KEYS] = writer.add(archive.KEYS, [msgspec.json.encode(present_keys())])
    manifest = Manifest(
        format=archive.FORMAT,
        service=__version__,
        created=begun.isoformat(timespec="seconds"),
        postgres=server,
        schema=schema,
        extensions=extensions,
        migrations=migrations,
        tables=rows,
        files=copied.files,
        file_bytes=copied.bytes,
        missing_files=copied.missing,
        parts=parts,
    )
    writer.finish(manifest)
    return manifest, copied.changed


def _known(file: IO[bytes]) -> Iterator[Known]:
    file.seek(0)
    decode = msgspec.json.Decoder(Known).decode
    for line in file:
        # COPY doubles every backslash; names and types have no other signs that it changes.
        yield decode(line.replace(b"\\\\", b"\\"))


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(_PIECE):
        yield piece
