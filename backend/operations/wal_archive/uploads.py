"""Storing uploaded files, which aren't in WAL: those of the data folder that are new.

A stored file never changes and its name is never used again, so each is stored once. Its name in
the place is a digest of its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from backend.instance.wal_archive import FILES, StateFile
from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError
from backend.operations.wal_archive import catalog
from objects.files import storage
from objects.files.models import StoredFile

_WHOLE: Final = 2**62  # bytes, more than any file has
_LATE: Final = timedelta(hours=1)
"""For how long the bytes of a file may come after its row, as those of an upload under way."""
_BATCH: Final = 500
_BEGINNING: Final = datetime.fromtimestamp(0, UTC)


class Unreadable(BackupError):
    """The storage doesn't return a file that it has."""


class Uploads:
    """The files of one instance in a place. The first pass compares all files with the place, the
    ones after it look at new files only."""

    def __init__(self, place: Place, state_file: StateFile) -> None:
        self._place = place
        self._state_file = state_file
        self._instance = ""
        self._position = _BEGINNING  # files up to then needn't be looked at again
        self._recent: dict[str, datetime] = {}  # stored files after ``_position``

    def store_new(self) -> None:
        """Store every file that the place doesn't have yet. Raises ``PlaceError`` and what the
        database raises, and ``BackupError`` if some files can't be read: the next pass tries
        again."""
        instance = self._state_file.now.instance
        if not instance:
            return
        begun = datetime.now(UTC)
        if self._instance != instance:
            self._instance, self._position = instance, _BEGINNING
            self._recent.clear()
        stored = self._digests() if self._position == _BEGINNING else set()
        unreadable = ""
        for name, created in self._files():
            if name in self._recent:
                continue
            try:
                is_stored = digest_of(name) in stored or self._store(instance, name)
            except Unreadable as error:
                unreadable = str(error)
                continue
            if is_stored and created > begun - _LATE:
                self._recent[name] = created
        if unreadable:
            raise BackupError(unreadable)
        self._position = begun - _LATE
        self._recent = {
            name: created for name, created in self._recent.items() if created > self._position
        }
        self._state_file.succeeded(FILES, begun.timestamp())

    def _store(self, instance: str, name: str) -> bool:
        """Store a file; return whether its bytes are there. Raises ``PlaceError`` and
        ``Unreadable``."""
        with _unreadable(name):
            pieces: Any = storage.read(name, 0, _WHOLE)
        if pieces is None:
            return False
        with closing(pieces):
            self._place.write(file_name(instance, name), _readable(name, pieces))
        return True

    def _files(self) -> Iterator[tuple[str, datetime]]:
        """Yield the files after the position, in batches: none holds a transaction while it is
        stored."""
        files = StoredFile.objects.order_by("created_at", "name").values_list("name", "created_at")
        position, last = self._position, ""
        while batch := list(
            files.filter(created_at__gte=position).exclude(created_at=position, name__lte=last)[
                :_BATCH
            ]
        ):
            yield from batch
            last, position = batch[-1]

    def absent(self) -> list[str]:
        """Return the digests of stored files that the instance doesn't have any more."""
        digests = self._digests()
        for name in StoredFile.objects.values_list("name", flat=True).iterator():
            digests.discard(digest_of(name))
        return sorted(digests)

    def _digests(self) -> set[str]:
        prefix = f"{catalog.ROOT}{self._state_file.now.instance}/files/"
        return {entry.name.removeprefix(prefix) for entry in self._place.entries(prefix)}


def _readable(name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    with _unreadable(name):
        yield from pieces


@contextmanager
def _unreadable(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # storages have errors of their own
        raise Unreadable(f"{name} can't be read: {error}") from error


def digest_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def file_name(instance: str, name: str) -> str:
    """Return the name of a file in the place."""
    return f"{catalog.ROOT}{instance}/files/{digest_of(name)}"
