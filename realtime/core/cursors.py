"""Cursors of the event channel: the position of a connection, as text for resuming.

``1.EPOCH.31337:17,10:3.31337:5``: the version, the epoch of the database, the last row delivered
for each network, and the row at which the connection started on each. The start decides what is
delivered again after a reorganisation. A network that isn't listed is at 0. Clients treat the
text as opaque.
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
"""Row numbers of the outbox by network; a missing network is at 0."""


class BadCursor(ValueError):
    """The text isn't a valid cursor."""


class Cursor(NamedTuple):
    """A parsed cursor. ``epoch`` is None for another version, which can't be resumed."""

    epoch: str | None
    positions: Marks
    starts: Marks


def marks_text(marks: Marks, networks: Collection[int] | None = None) -> str:
    """Encode the marks of these networks, of all by default."""
    return ",".join(
        f"{network}:{seq}"
        for network, seq in marks.items()
        if seq and (networks is None or network in networks)
    )


def head(epoch: str, positions: str) -> str:
    """Return the part of a cursor that connections share."""
    return f"{VERSION}.{epoch}.{positions}."


def encode(cursor: Cursor, networks: Collection[int] | None = None) -> str:
    """Encode a cursor, limited to these networks if given."""
    positions = marks_text(cursor.positions, networks)
    return head(cursor.epoch or "", positions) + marks_text(cursor.starts, networks)


def decode(text: str) -> Cursor:
    """Parse a cursor. Raises ``BadCursor``."""
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
