"""Where a network's reader stands: the cursor, and the headers behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Final

from backend.kernel.connections.advisory_locks import chain_head
from chain.core.blocks.forks import Hashes
from objects.database import locks
from objects.database.statements import fetch


class Elsewhere(Exception):
    """The cursor is not where it was: another process has moved it, or contracts have changed.
    What was read is dropped, and read anew from where the cursor is."""


@dataclass(frozen=True, slots=True)
class Position:
    """The cursor of a network as it was read, and the settings of the network that matter.

    ``number`` and ``hash`` are the last block that was read, None before the first look.
    ``contracts`` is the version of the contracts that it was read with from here on, ``planned``
    the one for which backfills are planned. ``finalized`` is what was final when a node last had
    the same blocks. ``age`` is the seconds since the last successful poll that was written.
    """

    network_id: int
    number: int | None
    hash: str
    contracts: int
    planned: int
    head: int | None
    safe: int | None
    finalized: int | None
    trouble: str | None
    halted: str | None
    age: float
    confirmations: int
    finality_depth: int | None
    verify: str

    @property
    def height(self) -> int:
        """``number``, where there is one."""
        if self.number is None:
            raise ValueError("the network has not been looked at")
        return self.number

    @property
    def final(self) -> int:
        """The height up to which the blocks behind the cursor can't change any more."""
        return min(self.number or 0, -1 if self.finalized is None else self.finalized)


_POSITION: Final = """
SELECT c.number, c.hash, c.contracts, c.planned, c.head, c.safe, c.finalized, c.trouble, c.halted,
       COALESCE(extract(epoch FROM statement_timestamp() - c.looked_at), 1e9),
       b.confirmations, b.finality_depth, b.verify
  FROM chain_cursor c JOIN chain_blockchain b ON b.network_id = c.network_id AND b.active
 WHERE c.network_id = %s
"""
_LOCKED: Final = """
SELECT number, hash, contracts, outbox, halted FROM chain_cursor WHERE network_id = %s FOR UPDATE
"""


def read(network_id: int) -> Position | None:
    """The position of a network; None if it isn't followed."""
    rows = fetch(_POSITION, (network_id,), prepare=True)
    if not rows:
        return None
    number, hash_, contracts, planned, head, safe, finalized, trouble, halted, *rest = rows[0]
    age, confirmations, depth, verify = rest
    return Position(
        network_id,
        _whole(number),
        hash_ or "",
        int(contracts),
        int(planned),
        _whole(head),
        _whole(safe),
        _whole(finalized),
        trouble,
        halted,
        float(age),
        int(confirmations),
        _whole(depth),
        str(verify),
    )


def make(network_id: int) -> None:
    """Give a network that is followed its cursor, if it has none."""
    fetch(
        "INSERT INTO chain_cursor (network_id) SELECT network_id FROM chain_blockchain"
        " WHERE network_id = %s AND active ON CONFLICT DO NOTHING",
        (network_id,),
        prepare=True,
    )


def lock(at: Position, *, halted: bool = False) -> int:
    """Lock the cursor until the transaction ends; the number of the last row of the outbox.

    Raises ``Elsewhere`` unless everything is as it was read. With ``halted`` that includes the
    reason of the halt; otherwise the network must not be halted.
    """
    rows = fetch(_LOCKED, (at.network_id,), prepare=True)
    as_read = (_text(at.number), at.hash or None, str(at.contracts))
    if not rows or rows[0][:3] != as_read or rows[0][4] != (at.halted if halted else None):
        raise Elsewhere
    return int(rows[0][3])


def hashes(network_id: int, first: int, last: int) -> Hashes:
    """The hashes of the blocks in this range that were read and stand."""
    rows = fetch(
        "SELECT number, hash FROM chain_block"
        " WHERE network_id = %s AND canonical AND number BETWEEN %s AND %s",
        (network_id, first, last),
        prepare=True,
    )
    return {int(number): hash_ for number, hash_ in rows}


def floor(at: Position) -> int:
    """The height below which no other chain is looked for: the highest block that is final, of
    those that are kept, or the lowest one that is kept."""
    rows = fetch(
        "SELECT COALESCE(max(number) FILTER (WHERE number <= %s), min(number)) FROM chain_block"
        " WHERE network_id = %s AND canonical",
        (at.final, at.network_id),
        prepare=True,
    )
    return (at.number or 0) if rows[0][0] is None else int(rows[0][0])


def lowest(network_id: int) -> int | None:
    """The height of the lowest block whose hash is stored."""
    rows = fetch(
        "SELECT min(number) FROM chain_block WHERE network_id = %s AND canonical",
        (network_id,),
        prepare=True,
    )
    return _whole(rows[0][0])


_PATIENCE: Final = 0.2  # seconds


@contextmanager
def alone(network_id: int) -> Iterator[bool]:
    """Whether this process is the only one in here with this network. It saves work that would
    be dropped; nothing relies on it. Whoever comes while another one is about to leave waits for
    that: the other may have looked before the block was there that this one has heard of."""
    end = monotonic() + _PATIENCE
    while not locks.try_lock(chain_head(network_id)):
        if monotonic() >= end:
            yield False
            return
        sleep(_PATIENCE / 10)
    try:
        yield True
    finally:
        locks.unlock(chain_head(network_id))


def _whole(value: str | None) -> int | None:
    return None if value is None else int(value)


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)
