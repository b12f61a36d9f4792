"""Copies of the cluster, from which the WAL after them leads to any later moment.

A copy is streamed from ``pg_basebackup`` into the place: it needs no room on this machine. What it
needs of WAL is what ``log`` stores anyway.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from backend import __version__
from backend.instance.folder import DataFolder
from backend.instance.wal_archive import BASES, StateFile
from backend.kernel.process.children import PLAIN_ENVIRONMENT
from backend.logs.setup import get_logger
from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError
from backend.operations.embedded.binaries import POSTGRES_MAJOR, postgres_programs
from backend.operations.wal_archive import catalog
from backend.operations.wal_archive.catalog import Span
from backend.operations.wal_archive.server import Server

_PIECE: Final = 256 * 1024
_OLDEST: Final = timedelta(days=7)
_LEAST: Final = timedelta(days=1)
_MAX_ABOUT: Final = 1024**3  # bytes, of about 16 million absent files

log = get_logger("wal_archive")


class About(msgspec.Struct, frozen=True):
    """What a restore has to know of a copy. ``keys`` are the instance's, and ``absent`` the stored
    files that no object referred to when the copy began."""

    postgres: int
    timeline: int
    service: str
    keys: dict[str, str]
    absent: list[str]


class BaseCopies:
    """The copies of one instance in a place. ``keys`` returns the instance's keys, ``absent`` the
    stored files that aren't files of the instance any more; ``days`` is for how long each moment
    can be restored."""

    def __init__(
        self,
        place: Place,
        server: Server,
        folder: DataFolder,
        state_file: StateFile,
        *,
        keys: Callable[[], dict[str, str]],
        absent: Callable[[], list[str]],
        days: int,
    ) -> None:
        self._place = place
        self._server = server
        self._folder = folder
        self._state_file = state_file
        self._keys = keys
        self._absent = absent
        self._days = timedelta(days=days)
        self._last: Span | None = None
        self._lineage = ""  # of ``_last``
        self._is_tidy = False  # nothing was copied since the superfluous was removed

    def copy_if_due(self) -> bool:
        """Make a copy if the lineage needs one; return whether it did. Remove what isn't needed any
        more after each copy, and in the first pass, since an earlier one may have failed halfway.
        Raises ``BackupError`` and ``psycopg.Error``."""
        instance, lineage = self._state_file.now.instance, self._state_file.now.lineage
        if not lineage:
            return False
        is_due = self._is_due(instance, lineage)
        if is_due:
            self._copy(instance, lineage)
            self._is_tidy = False
        if not self._is_tidy:
            self._remove_superfluous(instance, lineage)
            self._is_tidy = True
        self._state_file.recovered(BASES)
        return is_due

    def _is_due(self, instance: str, lineage: str) -> bool:
        """Whether there is none, the last one is a week old, or a day old and replaying the WAL
        since then would be more work than copying the database."""
        if self._lineage != lineage:
            prefix = catalog.lineage_prefix(instance, lineage)
            names = [entry.name for entry in self._place.entries(f"{prefix}base/")]
            bases = [base for each in catalog.read(names).get(instance, []) for base in each.bases]
            self._last, self._lineage = (bases[-1] if bases else None), lineage
        if self._last is None:
            return True
        age = self._server.time() - self._last.time
        is_long = self._server.position() - self._last.start > self._server.size()
        return age >= _OLDEST or (age >= _LEAST and is_long)

    def _copy(self, instance: str, lineage: str) -> None:
        prefix = catalog.lineage_prefix(instance, lineage)
        # Before the copy: what was removed by now is in no state that the copy leads to.
        about = About(
            POSTGRES_MAJOR, self._server.timeline(), __version__, self._keys(), self._absent()
        )
        start = self._server.position()
        stored = catalog.Lineage(prefix)
        self._place.write(
            stored.copy_name(start), _cluster(self._folder, is_first=self._last is None)
        )
        if self._state_file.now.lineage != lineage:
            raise BackupError("WAL was given up while the database was copied.")
        base = Span(start, self._server.position(), self._server.time())
        self._place.write(stored.base_name(base), [msgspec.json.encode(about)])
        self._last = base
        self._state_file.succeeded(BASES, base.time.timestamp())
        log.info("copy of the database stored", lineage=lineage)

    def _remove_superfluous(self, instance: str, lineage: str) -> None:
        root = f"{catalog.ROOT}{instance}/"
        entries = self._place.entries(root)
        lineages = catalog.read(entry.name for entry in entries).get(instance, [])
        horizon = self._server.time() - self._days
        current = catalog.lineage_prefix(instance, lineage)
        names, oldest = catalog.superfluous(lineages, current, horizon)
        for name in names:
            self._place.remove(name)
        if oldest is None or not names:
            return
        owner = next(each for each in lineages if oldest in each.bases)
        about = read_about(self._place, owner.base_name(oldest))
        # An archive that was restored meanwhile may have brought some of them back.
        for digest in {*about.absent}.intersection(self._absent()):
            self._place.remove(f"{root}files/{digest}")


def read_about(place: Place, name: str) -> About:
    """Return what is stored about a copy. Raises ``BackupError``."""
    content = place.read_bytes(name, _MAX_ABOUT)
    try:
        return msgspec.json.decode(content, type=About)
    except msgspec.MsgspecError as error:
        raise BackupError(f"{name} in {place.title} is damaged: {error}.") from None


def _cluster(folder: DataFolder, *, is_first: bool) -> Iterator[bytes]:
    """Yield the cluster as a compressed tar file. Raises ``BackupError`` if it isn't complete."""
    programs = postgres_programs()
    if programs is None:
        raise BackupError("pg_basebackup isn't installed: `pip install -r requirements.txt`.")
    command: list[str | Path] = [
        programs / "pg_basebackup",
        f"--dbname={folder.database_url}",
        "--pgdata=-",
        "--format=tar",
        "--wal-method=none",
        "--compress=client-gzip:1",
        # Nothing can be restored before the first one; the others don't hurry.
        f"--checkpoint={'fast' if is_first else 'spread'}",
        "--no-manifest",
    ]
    with subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=PLAIN_ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            while piece := process.stdout.read(_PIECE):
                yield piece
            errors = process.stderr.read().decode(errors="replace")
        finally:
            if process.poll() is None:
                process.terminate()
    if process.returncode:
        lines = errors.strip().splitlines() or ["no reason given"]
        raise BackupError(f"pg_basebackup failed: {lines[-1]}.")
