"""File storage into an archive and out of it, piece by piece, for any storage."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

import msgspec
from django.core.files import File

from backend.logs.setup import get_logger
from backend.operations.backup.archive import Archive, FileLine, Part, Writer
from backend.operations.backup.problems import BackupError
from objects.file_urls import is_stored_name
from objects.files import storage

_WHOLE = 2**62  # bytes, more than any file has
_MOST_LATE = 1000

log = get_logger("backup")


@dataclass
class Copied:
    """How many files with how many bytes were copied; how many weren't there, and how many have
    other bytes than when they were uploaded."""

    files: int = 0
    bytes: int = 0
    missing: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """What the database says about a file."""

    name: str
    content_type: str
    size: int
    sha256: str


def put_in(writer: Writer, files: Iterable[Known], lines: IO[bytes]) -> Copied:
    """Copy these files from storage into the archive; a line for each goes to ``lines``.

    A file that storage hasn't is written down as missing. Raises ``BackupError`` if storage fails.
    """
    done = Copied()
    late: list[Known] = []

    def write(line: FileLine) -> None:
        lines.write(msgspec.json.encode(line) + b"\n")

    def put(stored: Known) -> bool:
        part = _put_in(writer, stored)
        if part is None:
            return False
        write(FileLine(stored.name, stored.content_type, part.size, part.sha256))
        done.files += 1
        done.bytes += part.size
        if part != Part(stored.size, stored.sha256):
            done.changed += 1
            log.warning("a file has other bytes than when it was uploaded", name=stored.name)
        return True

    def miss(stored: Known) -> None:
        write(FileLine(stored.name, stored.content_type, missing=True))
        done.missing += 1
        log.warning("a file isn't in storage", name=stored.name)

    for stored in files:
        if put(stored):
            continue
        if len(late) < _MOST_LATE:
            late.append(stored)
        else:
            miss(stored)
    # An upload writes its row first, so the bytes of the newest rows may have come by now.
    for stored in late:
        if not put(stored):
            miss(stored)
    return done


def _put_in(writer: Writer, stored: Known) -> Part | None:
    try:
        pieces = storage.read(stored.name, 0, _WHOLE)
        return None if pieces is None else writer.add_file(stored.name, pieces)
    except OSError:
        raise
    except Exception as error:  # storages have errors of their own
        raise BackupError(f"The file {stored.name} can't be read: {_said(error)}") from error


def put_back(archive: Archive, added: list[str]) -> Copied:
    """Store the archive's files under their names; those that weren't there are added to ``added``.

    A name is given once and its bytes never change, so a file that is there already is left if it
    is the same, and replaced if not. Raises ``BackupError`` if storage fails.
    """
    done = Copied()
    for line, file in archive.files():
        if not is_stored_name(line.name):
            raise BackupError(f"The archive has a file with an impossible name: {line.name!r}.")
        try:
            there = _stored(line.name)
            if there is not None and there != Part(line.size, line.sha256):
                storage.delete(line.name)
                there = None
                done.changed += 1
            elif there is None:
                added.append(line.name)
            if there is None:
                storage.save(line.name, _Content(file, line))
        except Exception as error:
            raise BackupError(f"The file {line.name} can't be stored: {_said(error)}") from error
        done.files += 1
        done.bytes += line.size
    return done


def take_away(names: Iterable[str]) -> int:
    """Remove files from storage, as far as it lets; how many it didn't."""
    failed = 0
    for name in names:
        try:
            storage.delete(name)
        except Exception as error:
            log.error("a file can't be deleted", name=name, exc_info=error)
            failed += 1
    return failed


class _Content(File):
    """A file of an archive, as storages take it. S3 stores its type."""

    def __init__(self, file: IO[bytes], line: FileLine) -> None:
        super().__init__(file, line.name)
        self.size = line.size
        self.content_type = line.type


def _stored(name: str) -> Part | None:
    """What storage has under the name."""
    pieces: Iterator[bytes] | None = storage.read(name, 0, _WHOLE)
    if pieces is None:
        return None
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return Part(size, digest.hexdigest())


def _said(error: Exception) -> str:
    return f"{getattr(error, 'strerror', None) or error}".rstrip(".") + "."
