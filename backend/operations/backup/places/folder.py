"""A place that is a folder: of a disk, or of a file system of another machine."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import IO, Final

from backend.instance.folder import sync_folder
from backend.operations.backup.places.storage import Entry, Sink
from backend.operations.backup.problems import PlaceError, UnreadableObject

_PIECE: Final = 1024 * 1024  # bytes
_UNFINISHED: Final = ".part"


class Folder:
    """Objects are files below the folder, which only their owner may read.

    The folder has to exist: a file system that isn't mounted mustn't be replaced by a new folder
    on the machine's own disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.title = str(path)

    def entries(self, prefix: str) -> Iterator[Entry]:
        with self._errors("read"):
            self._check()
            # The folder that the prefix names, or the one that the names are in.
            below = self.path / prefix.rpartition("/")[0]
            matches = []
            for folder, _, names in os.walk(below, onerror=_raise if below.exists() else None):
                for file in (Path(folder, name) for name in names):
                    name = file.relative_to(self.path).as_posix()
                    if name.startswith(prefix) and file.suffix != _UNFINISHED:
                        matches.append((name, file))
            listed = []
            for name, file in sorted(matches):
                try:
                    status = file.lstat()
                except FileNotFoundError:  # removed meanwhile
                    continue
                if S_ISREG(status.st_mode):  # others are no backups, and may never end
                    listed.append(
                        Entry(name, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))
                    )
        yield from listed

    @contextmanager
    def writing(self, name: str) -> Iterator[Sink]:
        path = self.path / name
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_UNFINISHED}")
        with self._errors("written"):
            self._check()
            _make_folders(self.path, path.parent)
            number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        file = os.fdopen(number, "wb")
        try:
            yield _Sink(file, self._errors)
            with self._errors("written"):
                file.flush()
                os.fsync(number)
                fresh.rename(path)
                sync_folder(path.parent)
        finally:
            # After an exception: closing writes what is buffered, which may fail as well.
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                fresh.unlink(missing_ok=True)

    def pieces(self, name: str) -> Iterator[bytes]:
        with self._errors("read", name):
            self._check()
            try:
                file = (self.path / name).open("rb")
            except FileNotFoundError:
                raise UnreadableObject(f"{self.title} has no {name}.") from None
            with file:
                while piece := file.read(_PIECE):
                    yield piece

    def remove(self, name: str) -> None:
        with self._errors("changed"):
            self._check()
            path = self.path / name
            path.unlink(missing_ok=True)
            if path.parent.is_dir():
                sync_folder(path.parent)

    def remove_unfinished(self, prefix: str, is_own: Callable[[str], bool]) -> int:
        removed = 0
        with self._errors("changed"):
            self._check()
            below = self.path / prefix.rpartition("/")[0]
            for file in below.rglob(f".*{_UNFINISHED}"):
                target, _, _ = file.name.removeprefix(".").removesuffix(_UNFINISHED).rpartition(".")
                name = file.parent.relative_to(self.path).joinpath(target).as_posix()
                if name.startswith(prefix) and is_own(name):
                    file.unlink(missing_ok=True)
                    removed += 1
        return removed

    def _check(self) -> None:
        if not self.path.is_dir():
            raise PlaceError(
                f"{self.title}: there is no such folder. Create it, mount the file system that it"
                " is in, or correct BACKUP_TO."
            )

    @contextmanager
    def _errors(self, what: str, name: str = "") -> Iterator[None]:
        try:
            yield
        except OSError as error:
            subject = f"{name} in {self.title}" if name else self.title
            raise PlaceError(
                f"{subject} can't be {what}: {error.strerror or type(error).__name__}."
            ) from error


class _Sink:
    """Writes to a file, with the errors of its place."""

    def __init__(
        self, file: IO[bytes], errors: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        self._file = file
        self._errors = errors

    def write(self, piece: bytes, /) -> int:
        with self._errors("written"):
            return self._file.write(piece)


def _raise(error: OSError) -> None:
    raise error


def _make_folders(root: Path, folder: Path) -> None:
    if folder == root or folder.is_dir():
        return
    _make_folders(root, folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)
