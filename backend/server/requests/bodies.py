"""Request bodies as they arrive: in memory up to a limit, then in a temporary file."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO

from backend.server.limits import Limits
from backend.server.refusals import Overloaded


class Spool:
    """The memory and disk space that the bodies of one process use, disk space also by address.

    Not thread-safe: call it in the event loop.
    """

    def __init__(self, limits: Limits, folder: Callable[[], Path]) -> None:
        self._limits = limits
        self._folder = folder
        self._by_address: Counter[str] = Counter()
        self.size = 0
        self.memory = 0

    def reserve_memory(self, size: int) -> bool:
        """Reserve memory; False if there is no room."""
        if self.memory + size > self._limits.bodies_memory:
            return False
        self.memory += size
        return True

    def release_memory(self, size: int) -> None:
        """Release reserved memory."""
        self.memory -= size

    def open(self) -> IO[bytes]:
        """Open a temporary file, which disappears when it is closed or the process dies."""
        return tempfile.TemporaryFile(dir=self._folder())

    def reserve_disk(self, address: str, size: int) -> None:
        """Reserve disk space. Raises ``Overloaded`` if there is no room."""
        if (
            self.size + size > self._limits.spooled
            or self._by_address[address] + size > self._limits.spooled_per_address
        ):
            raise Overloaded
        self._by_address[address] += size
        self.size += size

    def release_disk(self, address: str, size: int) -> None:
        """Release reserved disk space."""
        self.size -= size
        self._by_address[address] -= size
        if self._by_address[address] <= 0:
            del self._by_address[address]


class Body:
    """One request's body. Only ``reader`` may be called in a thread."""

    __slots__ = (
        "_address",
        "_file",
        "_held",
        "_memory",
        "_pieces",
        "_spool",
        "_spooled",
        "limit",
        "size",
    )

    def __init__(self, address: str, limit: int, memory: int, spool: Spool) -> None:
        self.limit = limit
        self.size = 0
        self._address = address
        self._memory = memory
        self._spool = spool
        self._pieces: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._held = 0
        self._spooled = 0

    def append(self, piece: bytes) -> None:
        """Store the next piece. Raises ``Overloaded`` if the disk has no room."""
        self.size += len(piece)
        if self._file is None:
            if self.size <= self._memory and self._spool.reserve_memory(len(piece)):
                self._held += len(piece)
                self._pieces.append(piece)
                if len(self._pieces) >= 512:
                    # A list of one-byte pieces would take 50 bytes of memory for each byte.
                    self._pieces = [b"".join(self._pieces)]
                return
            self._move_to_disk()
        self._write(piece)

    def _move_to_disk(self) -> None:
        try:
            self._file = self._spool.open()
        except OSError as error:
            raise Overloaded from error
        body = b"".join(self._pieces)
        self._release()
        self._write(body)

    def _write(self, piece: bytes) -> None:
        if self._file is None:
            return
        self._spool.reserve_disk(self._address, len(piece))
        self._spooled += len(piece)
        try:
            self._file.write(piece)
        except OSError as error:
            raise Overloaded from error

    def reader(self) -> IO[bytes]:
        """Return the whole body as a file. Raises ``Overloaded`` if the disk is full."""
        if self._file is None:
            return io.BytesIO(b"".join(self._pieces))
        try:
            self._file.seek(0)  # flushes, which may fail
        except OSError as error:
            raise Overloaded from error
        return self._file

    def _release(self) -> None:
        self._pieces = []
        self._spool.release_memory(self._held)
        self._held = 0

    def close(self) -> None:
        """Free memory and disk space. Repeated calls have no effect."""
        self._release()
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):  # closing flushes, which fails on a full disk
                file.close()
        if self._spooled:
            self._spool.release_disk(self._address, self._spooled)
            self._spooled = 0
