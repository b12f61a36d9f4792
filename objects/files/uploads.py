"""An upload on its way in: piece by piece to a file of its own, never whole in memory.

The limit of size holds while it comes. Nothing is left of an upload that was refused or broke off;
what a killed process leaves, ``sweep`` removes.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from django.conf import settings
from django.core.files import File

from backend.kernel.errors import FileTooLarge
from objects.files.markup import HEAD_LENGTH

CHUNK: Final = 64 * 1024
_PREFIX: Final = "upload-"


def too_large(limit: int) -> FileTooLarge:
    """The refusal of more than ``limit`` bytes."""
    return FileTooLarge(f"The file is larger than {limit} bytes.")


class Upload:
    """The content of one upload, written down as it comes. A context manager.

    ``head`` are the first bytes, ``size`` and ``sha256`` are those of what has come so far.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._digest = hashlib.sha256()
        # Not removed by closing: storage may take it over by its path.
        self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115
            prefix=_PREFIX, dir=incoming_folder(), delete=False
        )
        self.head = b""
        self.size = 0

    def write(self, data: bytes) -> None:
        """Take the next piece. Raises ``FileTooLarge`` as soon as it is more than allowed."""
        self.size += len(data)
        if self.size > self._limit:
            raise too_large(self._limit)
        if len(self.head) < HEAD_LENGTH:
            self.head += data[: HEAD_LENGTH - len(self.head)]
        self._digest.update(data)
        self._file.write(data)

    def write_all(self, pieces: Iterable[bytes]) -> None:
        """Take pieces until there are no more."""
        for piece in pieces:
            self.write(piece)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def content(self, content_type: str) -> File:
        """What has come, on the disk, as storages take it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.seek(0)
        return _Content(self._file, content_type)

    def __enter__(self) -> Upload:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove what has come, unless a storage has taken it over."""
        self._file.close()
        with suppress(FileNotFoundError):
            os.unlink(self._file.name)


class _Content(File):
    """A file that a storage on the same disk may move into place."""

    def __init__(self, file: tempfile._TemporaryFileWrapper[bytes], content_type: str) -> None:
        super().__init__(file)
        self.content_type = content_type
        self._path = file.name

    def temporary_file_path(self) -> str:
        return self._path


def sweep(older_than: float) -> int:
    """Remove what killed processes have left, of uploads that began so many seconds ago."""
    removed = 0
    for path in incoming_folder().glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - older_than:
                path.unlink()
                removed += 1
    return removed


def incoming_folder() -> Path:
    """Where uploads are while they come: on the disk of the files, so that they can be moved."""
    folder = Path(settings.DATA_DIR) / "uploads"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
