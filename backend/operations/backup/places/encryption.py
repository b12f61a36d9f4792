"""Backups as age files (age-encryption.org/v1), which the program ``age`` decrypts as well.

They are encrypted to the one X25519 key of ``BACKUP_KEY``. Each 64 kB of an age file are
authenticated, and so is its end: a changed, cut or exchanged file is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyrage
from pyrage import x25519

from backend.operations.backup.places.storage import Sink
from backend.operations.backup.problems import BackupError

_MAX_HEADER: Final = 1024 * 1024  # bytes before the first decrypted ones


class Damaged(BackupError):
    """The bytes aren't what was encrypted, or not with this key. The text says which."""


class Cipher:
    """Encrypts and decrypts streams, each in bounded memory. ``key`` is an age identity; its
    check at the start of a process is ``backend.settings.areas.files``."""

    def __init__(self, key: str) -> None:
        self._identity = x25519.Identity.from_str(key)

    def encrypt(self, pieces: Iterable[bytes], sink: Sink) -> None:
        """Write the pieces to ``sink`` as an age file."""
        source, target = _Source(pieces), _Target(sink)
        try:
            pyrage.encrypt_io(source, target, [self._identity.to_public()])
        except Exception:
            # pyrage makes errors of its own of what these have raised.
            _raise_first(source, target)
            raise

    def decrypt(self, pieces: Iterable[bytes], sink: Sink) -> None:
        """Write what an age file contains to ``sink``. Raises ``Damaged``: what was written before
        is genuine, but not all."""
        target = _Target(sink)
        source = _Source(pieces, target)
        try:
            pyrage.decrypt_io(source, target, [self._identity])
        except (pyrage.DecryptError, OSError, ValueError) as error:
            _raise_first(source, target)
            if "No matching keys" in str(error):
                raise Damaged(
                    "it was encrypted with another key than that of BACKUP_KEY. Set the one that it"
                    " was made with."
                ) from None
            raise Damaged("it is damaged, cut off or no encrypted backup.") from None


class _Source:
    """The pieces as a file that pyrage reads."""

    def __init__(self, pieces: Iterable[bytes], target: _Target | None = None) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)
        self._rest = memoryview(b"")
        self._target = target
        self._size = 0
        self.error: BaseException | None = None

    def read(self, size: int) -> bytes:
        try:
            while not self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    return b""
                self._rest = memoryview(piece)
            piece, self._rest = bytes(self._rest[:size]), self._rest[size:]
            self._size += len(piece)
            if self._target and not self._target.size and self._size > _MAX_HEADER:
                raise Damaged("it is no encrypted backup: its header doesn't end.")
            return piece
        except BaseException as error:
            self.error = error
            raise


class _Target:
    """The sink as a file that pyrage writes."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.size = 0
        self.error: BaseException | None = None

    def write(self, piece: bytes) -> int:
        try:
            self._sink.write(piece)
            self.size += len(piece)
            return len(piece)
        except BaseException as error:
            self.error = error
            raise

    def flush(self) -> None:
        pass


def _raise_first(*files: _Source | _Target) -> None:
    for file in files:
        if file.error is not None:
            raise file.error from None
