"""The bytes of files, in Django's storage ``files``: whichever the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from django.core.files import File
from django.core.files.storage import Storage, storages

from objects.files.names import storage_key
from objects.files.uploads import CHUNK


def save(name: str, content: File) -> None:
    """Store a file under its name. Raises what the storage raises."""
    key = storage_key(name)
    stored = _storage().save(key, content)
    if stored != key:
        _storage().delete(stored)
        raise FileExistsError(f"there is a file {key} already")


def read(name: str, start: int, length: int) -> Iterator[bytes] | None:
    """So many bytes from there on, in pieces; None if there is no such file."""
    storage, key = _storage(), storage_key(name)
    read_range: Any = getattr(storage, "read_range", None)
    if read_range is not None:
        pieces: Iterator[bytes] | None = read_range(key, start, length)
        return pieces
    try:
        file = storage.open(key)
    except FileNotFoundError:
        return None
    file.seek(start)
    return _Pieces(file, length)


def delete(name: str) -> None:
    """Remove a file, if it is there. Raises what the storage raises."""
    _storage().delete(storage_key(name))


def _storage() -> Storage:
    return storages["files"]


class _Pieces(Iterator[bytes]):
    """An iterator that closes its file at the end, and also when it is closed before."""

    def __init__(self, file: IO[Any] | File, length: int) -> None:
        self._file = file
        self._left = length

    def __next__(self) -> bytes:
        piece: bytes = self._file.read(min(CHUNK, self._left)) if self._left else b""
        if not piece:
            self.close()
            raise StopIteration
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        self._file.close()
