"""Request bodies as they arrive: in memory up to a bound, then in a temporary file."""

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
    """The memory and disk space that bodies of one process take, disk space also by address."""

    def __init__(self, limits: Limits, folder: Callable[[], Path]) -> None:
        self._limits = limits
        self._folder = folder
        self._by_address: Counter[str] = Counter()
        self.size = 0
        self.memory = 0

    def hold(self, size: int) -> bool:
        """Account for more bytes in memory; false if there is no room for them."""
        if self.memory + size > self._limits.bodies_memory:
            return False
        self.memory += size
        return True

    def release(self, size: int) -> None:
        """So many bytes are no longer in memory."""
        self.memory -= size

    def open(self) -> IO[bytes]:
        """A new temporary file, gone when it is closed or the process dies."""
        return tempfile.TemporaryFile(dir=self._folder())

    def take(self, address: str, size: int) -> None:
        """Account for more bytes. Raises ``Overloaded`` if there is no room for them."""
        if (
            self.size + size > self._limits.spooled
            or self._by_address[address] + size > self._limits.spooled_per_address
        ):
            raise Overloaded
        self._by_address[address] += size
        self.size += size

    def give_back(self, address: str, size: int) -> None:
        """The file of so many bytes is gone."""
        self.size -= size
        self._by_address[address] -= size
        if self._by_address[address] <= 0:
            del self._by_address[address]


class Body:
    """One request's body. Append in the event loop; ``reader`` and ``close`` work in any thread."""

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
        """Store the next piece. Raises ``Overloaded`` if there is no room on the disk."""
        self.size += len(piece)
        if self._file is None:
            if self.size <= self._memory and self._spool.hold(len(piece)):
                self._held += len(piece)
                self._pieces.append(piece)
                if len(self._pieces) >= 512:
                    # Clients that send a byte at a time would cost 50 bytes for each.
                    self._pieces = [b"".join(self._pieces)]
                return
            self._move_to_disk()
        self._write(piece)

    def _move_to_disk(self) -> None:
        try:
            self._file = self._spool.open()
        except OSError as error:
            raise Overloaded from error
        whole = b"".join(self._pieces)
        self._release()
        self._write(whole)

    def _write(self, piece: bytes) -> None:
        if self._file is None:
            return
        self._spool.take(self._address, len(piece))
        self._spooled += len(piece)
        try:
            self._file.write(piece)
        except OSError as error:
            raise Overloaded from error

    def reader(self) -> IO[bytes]:
        """The whole body as a file, from its beginning. Raises ``Overloaded`` on a full disk."""
        if self._file is None:
            return io.BytesIO(b"".join(self._pieces))
        try:
            self._file.seek(0)  # also writes what was buffered
        except OSError as error:
            raise Overloaded from error
        return self._file

    def _release(self) -> None:
        self._pieces = []
        self._spool.release(self._held)
        self._held = 0

    def close(self) -> None:
        """Free memory and disk space. May be called again. Called in the event loop."""
        self._release()
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):  # what was buffered has no room on the disk
                file.close()
        if self._spooled:
            self._spool.give_back(self._address, self._spooled)
            self._spooled = 0
