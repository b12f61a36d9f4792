"""Where a connection to the event channel stands, as a text that a client can come back with.

``1.EPOCH.31337:17,10:3.31337:5``: the version, the epoch of the database, how far the connection
has been told of each network, and where it began on each, which decides about what comes back
after a reorganisation. A network that isn't named is at 0. Clients should take it for opaque.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

VERSION: Final = "1"
LONGEST: Final = 6000  # characters: it has to go into an address
_LARGEST: Final = 2**63 - 1
_CURSOR = re.compile(rf"{VERSION}\.([0-9a-z]{{1,32}})\.([0-9:,]*)\.([0-9:,]*)")
_ANY_VERSION = re.compile(r"([0-9]{1,3})\.[!-~]*")
_PAIR = re.compile(r"(0|[1-9][0-9]{0,18}):(0|[1-9][0-9]{0,18})")

Marks = Mapping[int, int]
"""Numbers of rows of the outbox by network; 0 for those that aren't there."""


class BadCursor(ValueError):
    """A text that never was a cursor."""


class Cursor(NamedTuple):
    """``epoch`` is None for a cursor of another version, which nothing can go on from."""

    epoch: str | None
    positions: Marks
    starts: Marks


def marks_text(marks: Marks, networks: Collection[int] | None = None) -> str:
    """The marks of these networks, of all by default."""
    return ",".join(
        f"{network}:{seq}"
        for network, seq in marks.items()
        if seq and (networks is None or network in networks)
    )


def head(epoch: str, positions: str) -> str:
    """The part of a cursor that connections have in common."""
    return f"{VERSION}.{epoch}.{positions}."


def encode(cursor: Cursor, networks: Collection[int] | None = None) -> str:
    """The text of a cursor, as far as it is about these networks."""
    positions = marks_text(cursor.positions, networks)
    return head(cursor.epoch or "", positions) + marks_text(cursor.starts, networks)


def decode(text: str) -> Cursor:
    """The cursor of a text; ``BadCursor`` if it isn't one."""
    if len(text) > LONGEST:
        raise BadCursor
    match = _CURSOR.fullmatch(text)
    if match is None:
        version = _ANY_VERSION.fullmatch(text)
        if version is None or version[1] == VERSION:
            raise BadCursor
        return Cursor(None, {}, {})
    return Cursor(match[1], _marks(match[2]), _marks(match[3]))


def _marks(text: str) -> dict[int, int]:
    marks: dict[int, int] = {}
    for part in text.split(",") if text else ():
        pair = _PAIR.fullmatch(part)
        if pair is None:
            raise BadCursor
        network, seq = int(pair[1]), int(pair[2])
        if network in marks or network > _LARGEST or seq > _LARGEST:
            raise BadCursor
        marks[network] = seq
    return marks
