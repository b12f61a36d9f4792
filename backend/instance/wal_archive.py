"""The state of WAL archiving in the data folder: written by its process
(``backend.operations.wal_archive``), read by ``doctor``, ``/metrics`` and the admin."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from math import inf
from pathlib import Path
from time import time
from typing import Any, Final

import msgspec

from backend.instance.folder import DataFolder, private_file

LOG: Final = "log"
BASES: Final = "bases"
FILES: Final = "files"
LATE: Final = 180.0
"""Seconds after which WAL that isn't archived is a failure."""
SLOT_PREFIX: Final = "wal_archive_"
"""How the names of the replication slots of archives begin. The rest is the lineage."""


class Part(msgspec.Struct, omit_defaults=True):
    """One kind of what is archived. ``done`` is when it was complete in the place, ``trouble`` why
    it can't be brought there ``since`` then. Times are seconds since the epoch."""

    done: float | None = None
    trouble: str = ""
    since: float | None = None


class State(msgspec.Struct, omit_defaults=True):
    """``is_on`` says whether WAL is to be archived, ``is_held`` that this waits until the restored
    instance is resumed. ``instance`` and ``lineage`` are where it archives; ``target`` is a digest
    of the place and its key. ``position`` is up to where the lineage is stored, 0 at its
    beginning. ``gap`` is when archiving last began again without the WAL before,
    and ``gap_reason`` why."""

    is_on: bool = False
    is_held: bool = False
    instance: str = ""
    lineage: str = ""
    position: int = 0
    target: str = ""
    log: Part = msgspec.field(default_factory=Part)
    bases: Part = msgspec.field(default_factory=Part)
    files: Part = msgspec.field(default_factory=Part)
    gap: float | None = None
    gap_reason: str = ""


def age(part: Part, now: float) -> float:
    """Return for how many seconds a part hasn't been complete in the place; infinite if never."""
    return inf if part.done is None else max(0.0, now - part.done)


def path_of(folder: DataFolder) -> Path:
    return folder.path / "wal-archive.json"


class StateError(Exception):
    """The state can't be read. The text names the file and the reason, without a full stop."""


def read(folder: DataFolder) -> State:
    """Return the state of a data folder, an empty one if it has none. Raises ``StateError``."""
    path = path_of(folder)
    try:
        return msgspec.json.decode(path.read_bytes(), type=State)
    except FileNotFoundError:
        return State()
    except (OSError, msgspec.MsgspecError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise StateError(f"{path} can't be read: {reason}") from error


class StateFile:
    """The state in the process that archives, for its threads. Changes are on the disk when a
    method returns; a disk that is full keeps them in memory. A file that can't be read counts as
    none, and as a gap: archiving begins again, and writes it."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._path = path_of(folder)
        self._lock = threading.Lock()
        self.now = self._read()

    def reload(self) -> None:
        """Take over what the process before this one has written."""
        with self._lock:
            self.now = self._read()

    def change(self, **values: Any) -> None:
        """Replace fields of the state."""
        with self._lock:
            self.now = msgspec.structs.replace(self.now, **values)
            self._write()

    def succeeded(self, part: str, done: float | None = None) -> None:
        """Record that a part is complete in the place, as of ``done`` or now."""
        self.change(**{part: Part(done=time() if done is None else done)})

    def recovered(self, part: str) -> None:
        """Clear the trouble of a part whose last attempt succeeded and stored nothing."""
        before: Part = getattr(self.now, part)
        if before.trouble:
            self.change(**{part: Part(before.done)})

    def failed(self, part: str, trouble: str) -> bool:
        """Record why a part can't be archived. Return whether this is new."""
        before: Part = getattr(self.now, part)
        since = before.since if before.trouble else time()
        self.change(**{part: Part(before.done, trouble, since)})
        return before.trouble != trouble

    def _read(self) -> State:
        try:
            return read(self._folder)
        except StateError as error:
            return State(gap=time(), gap_reason=str(error))

    def _write(self) -> None:
        fresh = self._path.with_suffix(".new")
        try:
            with private_file(fresh) as file:
                file.write(msgspec.json.encode(self.now).decode())
            fresh.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink()


def digest_of(text: str) -> str:
    """Return a digest by which a place and its key are recognised."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
