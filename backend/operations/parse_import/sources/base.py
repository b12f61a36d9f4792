"""What an import reads, and what every source offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from backend.kernel.json_types import Wire
from backend.operations.parse_import.formats.definitions import ClassDefinition
from backend.operations.parse_import.formats.stored_objects import (
    Member,
    UnreadableValue,
    check_depth,
)
from objects.rules import TransferredObject

Row = TypeVar("Row")

BATCH = 1000
"""Objects in a batch, at most."""
_MOST_TEXT: Final = 256 * 1024
"""Characters of JSON that the objects of a batch have, unless one alone has more."""


class SourceFailed(Exception):
    """The source can't be read at the moment, or not at all. The text holds no key or password."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that can't be imported: its id, or its place in the file, and why."""

    name: str
    reason: str


class Batch(NamedTuple):
    """Objects that follow each other, and the position behind them, from which reading resumes."""

    position: str
    objects: Sequence[TransferredObject]
    unreadable: Sequence[Unreadable] = ()


def read_batch(
    position: str,
    rows: Iterable[tuple[str, Row]],
    read: Callable[[Row], TransferredObject],
) -> Batch:
    """Return the batch of these rows, each with the name that it has if it can't be read."""
    objects: list[TransferredObject] = []
    unreadable: list[Unreadable] = []
    for name, row in rows:
        try:
            obj = read(row)
            check_depth(obj.fields)
        except UnreadableValue as error:
            unreadable.append(Unreadable(name, str(error)))
        else:
            objects.append(obj)
    return Batch(position, objects, unreadable)


class Sized(NamedTuple):
    """A JSON value, and the characters that it took."""

    size: int
    value: Any


def batches(values: Iterable[Sized]) -> Iterator[list[Any]]:
    """Return values in lists that are small enough to be in memory together."""
    batch: list[Any] = []
    size = 0
    for each in values:
        if batch and (len(batch) == BATCH or size + each.size > _MOST_TEXT):
            yield batch
            batch, size = [], 0
        batch.append(each.value)
        size += each.size
    if batch:
        yield batch


def definition_of(
    read: Callable[[Any], ClassDefinition], stored: object, place: str
) -> ClassDefinition:
    """Return the class that is stored so. Raises ``SourceFailed``, which names the place."""
    try:
        return read(stored)
    except UnreadableValue as error:
        raise SourceFailed(f"{place}: {error}") from None


class Members(NamedTuple):
    """Members of one relation, and the position behind them."""

    position: str
    members: Sequence[Member]


@dataclass(frozen=True, slots=True)
class AppSettings:
    """The parameters of the app as ``PUT /config`` takes them, and its webhooks.

    ``unreadable`` are parameters that can't be imported.
    """

    config: Wire = field(default_factory=dict)
    hooks: Sequence[Wire] = ()
    unreadable: Sequence[Unreadable] = ()


class Source(Protocol):
    """A Parse Server's contents. Positions are texts; the empty one is the beginning."""

    name: str
    """Identifies the source in messages and in the progress file. No credentials."""
    has_password_hashes: bool

    def classes(self) -> list[ClassDefinition]:
        """Return all classes, those of Parse itself included."""

    def foreign(self) -> list[str]:
        """Return the names of what the source holds that isn't the Parse Server's."""

    def count(self, definition: ClassDefinition) -> int:
        """Return how many objects the class has, as the source counts them."""

    def objects(self, definition: ClassDefinition, position: str) -> Iterator[Batch]:
        """Read the objects of a class behind a position."""

    def members(self, definition: ClassDefinition, key: str, position: str) -> Iterator[Members]:
        """Read the members of a relation field behind a position."""

    def settings(self) -> AppSettings:
        """Return the config and the webhooks."""

    def close(self) -> None:
        """Release what the source holds."""
