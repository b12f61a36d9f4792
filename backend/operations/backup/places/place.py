"""The place of ``BACKUP_TO``: write, list, read and remove backups by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from backend.operations.backup.places.encryption import Cipher, Damaged
from backend.operations.backup.places.folder import Folder
from backend.operations.backup.places.storage import Entry, Sink, Storage
from backend.operations.backup.problems import PlaceError, UnreadableObject

ENCRYPTED: Final = ".age"
"""How the stored names of encrypted objects end."""

_NAME: Final = re.compile(
    r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_.+=@-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=@-]*)*"
)
_LONGEST_NAME: Final = 200  # characters
BUCKET: Final = "s3://"
"""How a ``BACKUP_TO`` that is a bucket begins."""


class Place:
    """A folder or a bucket.

    With ``BACKUP_KEY`` everything is an age file: what it has that isn't encrypted is left alone,
    and what was encrypted with another key, changed or cut off can't be read. Without it, objects
    are stored as they are. Names are paths of letters, digits and ``_.+=@-``; those of encrypted
    objects have ``.age`` at the end in the storage, and not here.

    All methods raise ``PlaceError`` for a place that can't be used. A bucket that doesn't answer is
    an error after some minutes; a folder on a network file system waits as long as its mount.
    """

    def __init__(self, storage: Storage, key: str = "") -> None:
        self._storage = storage
        self._cipher = Cipher(key) if key else None
        self._suffix = ENCRYPTED if key else ""
        self.title = storage.title

    def entries(self, prefix: str = "") -> list[Entry]:
        """Return the complete objects whose names begin with ``prefix``, sorted by name. Sizes
        are the stored ones."""
        names = (
            entry._replace(name=entry.name.removesuffix(self._suffix))
            for entry in self._storage.entries(prefix)
            if entry.name.endswith(self._suffix)
            and (self._suffix or not entry.name.endswith(ENCRYPTED))
        )
        return sorted(entry for entry in names if _is_name(entry.name))

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        """Store the bytes under a name, in place of what it has had. Until all of them are
        stored, and if the process is killed before, nothing has changed. Raises what iterating
        over ``pieces`` raises as it is."""
        with self._storage.writing(self._stored(name)) as sink:
            if self._cipher is not None:
                self._cipher.encrypt(pieces, sink)
                return
            for piece in pieces:
                sink.write(piece)

    def read(self, name: str, sink: Sink) -> None:
        """Write the bytes of a name to ``sink``, decrypted. They are complete when this returns;
        what was written before an exception mustn't be used. Raises ``UnreadableObject``."""
        pieces = self._storage.pieces(self._stored(name))
        if self._cipher is None:
            for piece in pieces:
                sink.write(piece)
            return
        try:
            self._cipher.decrypt(pieces, sink)
        except Damaged as error:
            raise UnreadableObject(f"{name} in {self.title} can't be read: {error}") from None

    def read_bytes(self, name: str, limit: int) -> bytes:
        """Return the bytes of a name, decrypted. Raises ``UnreadableObject``, also for more than
        ``limit`` bytes."""
        content = _Content(limit)
        try:
            self.read(name, content)
        except _TooLarge:
            raise UnreadableObject(
                f"{name} in {self.title} can't be read: it has more than {limit} bytes."
            ) from None
        return bytes(content.pieces)

    def remove(self, name: str) -> None:
        """Remove a name; one that doesn't exist is no error."""
        self._storage.remove(self._stored(name))

    def remove_unfinished(
        self, prefix: str, is_own: Callable[[str], bool] = lambda name: True
    ) -> int:
        """Remove what killed writers have left of the names that begin with ``prefix`` and for
        which ``is_own`` is true; return how many that were. None of these may be written
        meanwhile."""
        return self._storage.remove_unfinished(
            prefix, lambda stored: is_own(stored.removesuffix(ENCRYPTED))
        )

    def _stored(self, name: str) -> str:
        if not _is_name(name):
            raise PlaceError(
                f"{name[:100]!r} can't be the name of a backup: names are letters, digits and"
                " _.+=@-, without two dots in a row."
            )
        return name + self._suffix


def place_of(settings: Mapping[str, Any]) -> Place:
    """Return the place that ``BACKUP_TO`` of these settings names, for ``BACKUP_KEY``.

    The settings are those of ``backend.settings.areas.files``, by name. Raises ``PlaceError`` if
    there is none. It isn't contacted yet.
    """
    target = str(settings.get("BACKUP_TO") or "")
    if not target:
        raise PlaceError("There is no place for backups: set BACKUP_TO.")
    key = str(settings.get("BACKUP_KEY") or "")
    if not target.startswith(BUCKET):
        return Place(Folder(Path(target)), key)
    # boto3 takes half a second to import.
    from backend.operations.backup.places.bucket import Bucket

    bucket, _, prefix = target.removeprefix(BUCKET).partition("/")
    return Place(Bucket(bucket, prefix.strip("/"), settings), key)


class _TooLarge(Exception):
    """There are more bytes than may be read."""


class _Content:
    """Collects a limited number of bytes."""

    def __init__(self, limit: int) -> None:
        self.pieces = bytearray()
        self._limit = limit

    def write(self, piece: bytes, /) -> int:
        self.pieces += piece
        if len(self.pieces) > self._limit:
            raise _TooLarge
        return len(piece)


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None
