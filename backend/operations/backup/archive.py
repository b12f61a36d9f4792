"""What an archive looks like: a tar file, written and read in one go, of any size.

::

    database.dump     PostgreSQL's custom format
    files/NAME        the bytes of each file, by its stored name
    files.ndjson      a line for each file: name, size, sha256, type, in the order above; "missing"
                      and no size where the storage hadn't the file
    keys.json         the instance's keys by name; not there in an archive without keys
    manifest.json     last, so an archive without it is incomplete

The manifest has a SHA-256 for each part; those of the files are in ``files.ndjson``. They find
damage, not forgery: who may change an archive may change its manifest.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import msgspec

from backend.operations.backup.problems import BackupError

FORMAT = 1
DATABASE, FILES, KEYS, MANIFEST = "database.dump", "files.ndjson", "keys.json", "manifest.json"
_FOLDER = "files/"
_PIECE = 1024 * 1024
_MOST_SMALL = 64 * 1024 * 1024  # bytes of a part that is read at once


class Part(msgspec.Struct, frozen=True):
    """Size and SHA-256 of one part."""

    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What an archive says about itself. ``tables`` has the number of rows of each table,
    ``migrations`` what had been applied, as ``app.name``."""

    format: int
    service: str
    created: str
    postgres: int
    schema: str
    extensions: list[str]
    migrations: list[str]
    tables: dict[str, int]
    files: int
    file_bytes: int
    missing_files: int
    parts: dict[str, Part]


class FileLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of ``files.ndjson``."""

    name: str
    type: str = ""
    size: int = 0
    sha256: str = ""
    missing: bool = False


class _Format(msgspec.Struct):
    format: int


class Writer:
    """Writes parts one after the other to a seekable file; sizes needn't be known before."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def add(self, name: str, pieces: Iterable[bytes]) -> Part:
        """Write a part as its bytes come."""
        begin = self._file.tell()
        # The size is put into the header afterwards, which doesn't change the header's length.
        self._file.write(_header(name, 0))
        digest, size = hashlib.sha256(), 0
        for piece in pieces:
            self._file.write(piece)
            digest.update(piece)
            size += len(piece)
        self._file.write(b"\0" * (-size % tarfile.BLOCKSIZE))
        end = self._file.tell()
        self._file.seek(begin)
        self._file.write(_header(name, size))
        self._file.seek(end)
        return Part(size, digest.hexdigest())

    def add_file(self, name: str, pieces: Iterable[bytes]) -> Part:
        """Write the bytes of a stored file."""
        return self.add(_FOLDER + name, pieces)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest and the end; the archive is complete, and on the disk."""
        self.add(MANIFEST, [msgspec.json.format(msgspec.json.encode(manifest), indent=1)])
        self._file.write(b"\0" * (2 * tarfile.BLOCKSIZE))
        self._file.flush()
        os.fsync(self._file.fileno())


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.GNU_FORMAT)


class Archive:
    """An archive, open for reading. Raises ``BackupError`` for a file that is no complete one, or
    one of a newer format."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._tar = tarfile.open(path, "r:")  # noqa: SIM115
        except OSError as error:
            raise BackupError(f"{path} can't be read: {error.strerror or error}.") from error
        except tarfile.TarError:
            raise BackupError(f"{path} is no archive of an instance.") from None
        self._parts: dict[str, tarfile.TarInfo] = {}
        try:
            self._parts = {item.name: item for item in self._items() if not _is_file(item)}
            self.manifest = self._read_manifest()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._tar.close()

    def has(self, name: str) -> bool:
        return name in self._parts

    def pieces(self, name: str) -> Iterator[bytes]:
        """The bytes of a part."""
        yield from _pieces(self._opened(self._part(name)))

    def read(self, name: str) -> bytes:
        """All bytes of a small part."""
        part = self._part(name)
        if part.size > _MOST_SMALL:
            raise self._damaged(f"{name} is too large")
        return self._opened(part).read()

    def files(self) -> Iterator[tuple[FileLine, IO[bytes]]]:
        """The files that the archive has, each with its bytes."""
        items = (item for item in self._items() if _is_file(item))
        for line in self.lines():
            if line.missing:
                continue
            item = next(items, None)
            if item is None or item.name != _FOLDER + line.name:
                raise self._damaged(f"{line.name} isn't where it should be")
            yield line, self._opened(item)
        if next(items, None) is not None:
            raise self._damaged("it has files that its list hasn't")

    def lines(self) -> Iterator[FileLine]:
        """What the archive says about each file."""
        decode = msgspec.json.Decoder(FileLine).decode
        try:
            for line in self._opened(self._part(FILES)):
                yield decode(line)
        except msgspec.DecodeError:
            raise self._damaged(f"{FILES} can't be read") from None

    def check(self) -> Manifest:
        """Read all of it and compare it with the manifest. Raises ``BackupError``."""
        for name in self._parts:
            if name != MANIFEST and name not in self.manifest.parts:
                raise self._damaged(f"{name} isn't in its manifest")
        for name, expected in self.manifest.parts.items():
            if _part_of(self.pieces(name)) != expected:
                raise self._damaged(f"{name} differs from its checksum")
        files = size = 0
        for line, file in self.files():
            if _part_of(_pieces(file)) != Part(line.size, line.sha256):
                raise self._damaged(f"{line.name} differs from its checksum")
            files, size = files + 1, size + line.size
        if (files, size) != (self.manifest.files, self.manifest.file_bytes):
            raise self._damaged("it has not as many files as its manifest says")
        return self.manifest

    def _items(self) -> Iterator[tarfile.TarInfo]:
        """Every item's header, in order."""
        try:
            with tarfile.open(self.path, "r:") as tar:
                while (item := tar.next()) is not None:
                    tar.members = []  # type: ignore[attr-defined]  # or it would keep all of them
                    yield item
        except (tarfile.TarError, EOFError):
            raise self._damaged("it ends in the middle, or in nonsense") from None

    def _read_manifest(self) -> Manifest:
        if MANIFEST not in self._parts:
            raise BackupError(f"{self.path} is no archive of an instance, or an incomplete one.")
        text = self.read(MANIFEST)
        try:
            version = msgspec.json.decode(text, type=_Format).format
            if version > FORMAT:
                raise BackupError(
                    f"{self.path} has format {version}, this release reads {FORMAT}: update first."
                )
            return msgspec.json.decode(text, type=Manifest)
        except msgspec.DecodeError as error:
            raise self._damaged(f"its manifest can't be read ({error})") from None

    def _part(self, name: str) -> tarfile.TarInfo:
        if name not in self._parts:
            raise self._damaged(f"{name} is missing")
        return self._parts[name]

    def _opened(self, item: tarfile.TarInfo) -> IO[bytes]:
        file = self._tar.extractfile(item)
        if file is None:
            raise self._damaged(f"{item.name} is no file")
        return file

    def _damaged(self, how: str) -> BackupError:
        return BackupError(f"{self.path} is damaged: {how}.")


def check(path: Path) -> Manifest:
    """Read all of an archive and compare it with its checksums. Raises ``BackupError``."""
    with Archive(path) as archive:
        return archive.check()


def _is_file(item: tarfile.TarInfo) -> bool:
    return item.name.startswith(_FOLDER)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    try:
        while piece := file.read(_PIECE):
            yield piece
    except (tarfile.TarError, OSError, EOFError) as error:
        raise BackupError(f"The archive can't be read to its end: {error}.") from error


def _part_of(pieces: Iterable[bytes]) -> Part:
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return Part(size, digest.hexdigest())
