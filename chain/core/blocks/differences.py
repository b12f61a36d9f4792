"""What is stored of some blocks, compared with what their logs say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from chain.core.blocks.events import EventRow
from chain.core.columns import Columns

_decode = msgspec.json.Decoder().decode
_COMPARED: Final = [
    column
    for column in Columns.of(EventRow)
    if column.is_compared and not column.is_identity and column.sql_type != "jsonb"
]
_always_known: Final = attrgetter(*(each.name for each in _COMPARED if not each.keeps_known))
_MAYBE_UNKNOWN: Final = [column.name for column in _COMPARED if column.keeps_known]
_maybe_unknown: Final = attrgetter(*_MAYBE_UNKNOWN)


class Identity(NamedTuple):
    """Which log of a network."""

    block_number: int
    log_index: int
    block_hash: str


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


def compare(stored: Mapping[Identity, EventRow], read: Iterable[EventRow]) -> Difference:
    """Compare the events of some blocks and contracts. A column that
    ``keeps_known`` isn't compared if one side doesn't know it."""
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


def differ_in_transaction_alone(stored: EventRow, row: EventRow) -> bool:
    """Whether a stored event and one that was read differ in the hash of the transaction alone."""
    return not _same(stored, row) and _same(
        msgspec.structs.replace(stored, transaction_hash=row.transaction_hash), row
    )


def _same(stored: EventRow, row: EventRow) -> bool:
    return (
        _always_known(stored) == _always_known(row)
        and (
            _maybe_unknown(stored) == _maybe_unknown(row)
            or all(_is_same_or_unknown(stored, row, name) for name in _MAYBE_UNKNOWN)
        )
        and (stored.args == row.args or _value(stored.args) == _value(row.args))
    )


def _is_same_or_unknown(stored: EventRow, row: EventRow, name: str) -> bool:
    before, now = getattr(stored, name), getattr(row, name)
    return before == now or before is None or now is None


def _value(text: str) -> Any:
    """JSON, whose object keys may be in any order; PostgreSQL has one of its own."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return text
