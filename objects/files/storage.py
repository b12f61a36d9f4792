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


class OtherSize(Exception):
    """The storage has a file of another size than the one that was stored."""


def read(name: str, start: int, length: int, *, size: int | None = None) -> Iterator[bytes] | None:
    """So many bytes from there on, in pieces; None if there is no such file.

    The first piece is read at once: a storage that fails does so here, and later only if it fails
    in the middle. Raises ``OtherSize`` if the whole file hasn't this ``size``, and what the storage
    raises.
    """
    opened = _open(storage_key(name), start, length)
    if opened is None:
        return None
    file, stored_size = opened
    if size is not None and stored_size != size:
        file.close()
        raise OtherSize(f"it has {stored_size} bytes, and {size} were stored")
    return _Pieces(file, length)


def _open(key: str, start: int, length: int) -> tuple[IO[Any] | File, int] | None:
    storage = _storage()
    open_range: Any = getattr(storage, "open_range", None)
    if open_range is not None:
        opened: tuple[IO[Any], int] | None = open_range(key, start, length)
        return opened
    try:
        file = storage.open(key)
    except FileNotFoundError:
        return None
    size = file.size
    file.seek(start)
    return file, size


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
        self._first = self._read()

    def __next__(self) -> bytes:
        piece = self._first or self._read()
        self._first = b""
        if not piece:
            raise StopIteration
        return piece

    def _read(self) -> bytes:
        try:
            piece: bytes = self._file.read(min(CHUNK, self._left)) if self._left else b""
        except BaseException:
            self.close()
            raise
        self._left -= len(piece)
        if not piece:
            self._left = 0
            self.close()
        return piece

    def close(self) -> None:
        self._file.close()
