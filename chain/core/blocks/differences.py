"""What is stored of some blocks, compared with what their logs say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from chain.core.blocks.events import EventRow

_decode = msgspec.json.Decoder().decode


class Identity(NamedTuple):
    """Which log of a network."""

    block_number: int
    log_index: int
    block_hash: str


class Content(NamedTuple):
    """What is stored of a log; ``args`` is JSON text."""

    event_name: str | None
    address: str
    transaction_hash: str
    transaction_index: int
    ordinal: int
    args: str
    block_timestamp: str | None = None


class Difference(NamedTuple):
    """What is not there and should be, what is and should not be, and what is there otherwise than
    it should be. ``undated`` lacks nothing but the time of its block, and is no difference."""

    missing: list[EventRow]
    superfluous: list[Identity]
    different: list[EventRow]
    undated: list[EventRow]

    def blocks(self) -> list[int]:
        """The heights that it is about, in order."""
        numbers = {row.block_number for row in (*self.missing, *self.different)}
        return sorted(numbers | {row_of_event.block_number for row_of_event in self.superfluous})

    def __bool__(self) -> bool:
        return bool(self.missing or self.superfluous or self.different)


def identity_of(row: EventRow) -> Identity:
    return Identity(row.block_number, row.log_index, row.block_hash)


def compare(stored: Mapping[Identity, Content], read: Iterable[EventRow]) -> Difference:
    """Compare the events of some blocks and contracts. The contract's name is not compared: it's
    the one that the contract had when its event was stored. A time that isn't known on one
    side isn't either."""
    missing, different, undated = [], [], []
    identities = set()
    for row in read:
        identity = identity_of(row)
        identities.add(identity)
        stored_row = stored.get(identity)
        if stored_row is None:
            missing.append(row)
        elif not _same(stored_row, row):
            different.append(row)
        elif stored_row.block_timestamp is None:
            undated.append(row)
    return Difference(missing, sorted(stored.keys() - identities), different, undated)


def differ_in_transaction_alone(stored: Content, row: EventRow) -> bool:
    """Whether a stored event and one that was read differ in the hash of the transaction alone."""
    return not _same(stored, row) and _same(
        stored._replace(transaction_hash=row.transaction_hash), row
    )


def _same(stored: Content, row: EventRow) -> bool:
    return (
        stored.event_name == row.event_name
        and stored.address == row.address
        and stored.transaction_hash == row.transaction_hash
        and stored.transaction_index == row.transaction_index
        and stored.ordinal == row.ordinal
        and (
            stored.block_timestamp == row.block_timestamp
            or None in (stored.block_timestamp, row.block_timestamp)
        )
        and (stored.args == row.args or _value(stored.args) == _value(row.args))
    )


def _value(text: str) -> Any:
    """JSON, whose object keys may be in any order; PostgreSQL has one of its own."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return text
