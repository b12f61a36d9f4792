"""What a place needs of a storage: complete objects by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """An object: its name, its stored size in bytes and when it was written."""

    name: str
    size: int
    modified: datetime


class Sink(Protocol):
    """Takes the bytes of an object that is being written."""

    def write(self, piece: bytes, /) -> int: ...


class Storage(Protocol):
    """A folder or a bucket. All methods raise ``PlaceError``, which names the place."""

    title: str
    """How errors name the place. It has no credentials."""

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield the complete objects whose names begin with ``prefix``, sorted by name."""
        ...

    def writing(self, name: str) -> AbstractContextManager[Sink]:
        """Write an object in place of one of this name. It exists when the block has ended
        without an exception; otherwise nothing has changed. An exception of the block is raised
        as it is."""
        ...

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of an object. Raises ``UnreadableObject`` if there is none."""
        ...

    def remove(self, name: str) -> None:
        """Remove an object; one that doesn't exist is no error."""
        ...

    def remove_unfinished(self, prefix: str, is_own: Callable[[str], bool]) -> int:
        """Remove what killed writers have left of objects whose names begin with ``prefix`` and
        for which ``is_own`` is true; return how many that were."""
        ...
