"""Where a network's reader stands: the cursor, and the headers behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Annotated, Final, NamedTuple

from backend.kernel.connections.advisory_locks import chain_head
from chain.core.blocks.forks import Hashes
from chain.models.stored import BlockRow
from objects.database import locks
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_value


class Elsewhere(Exception):
    """The cursor is not where it was: another process has moved it, or contracts have changed.
    What was read is dropped, and read again from the cursor on."""


_AGE: Final = "COALESCE(extract(epoch FROM statement_timestamp() - {row}.looked_at), 1e9)"


class Position(NamedTuple):
    """The cursor of a network as it was read, and the settings of the network that matter.

    ``number`` and ``hash`` are the last block that was read, None before the first look.
    ``contracts`` is the version of the contracts that it was read with from here on, ``planned``
    the one for which backfills are planned. ``finalized`` is what was final when a node last had
    the same blocks. ``age`` is the seconds since the last successful poll that was written.
    """

    network_id: int
    number: int | None
    hash: Annotated[str, "COALESCE({row}.hash, '')"]
    contracts: int
    planned: int
    head: int | None
    safe: int | None
    finalized: int | None
    trouble: str | None
    halted: str | None
    age: Annotated[float, _AGE]
    confirmations: Annotated[int, "b.confirmations"]
    finality_depth: Annotated[int | None, "b.finality_depth"]
    verify: Annotated[str, "b.verify"]

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


class _Locked(NamedTuple):
    number: int | None
    hash: str | None
    contracts: int
    outbox: int
    halted: str | None


_POSITION: Final = f"""
SELECT {select_list(Position, "c")}
  FROM chain_cursor c JOIN chain_blockchain b ON b.network_id = c.network_id AND b.active
 WHERE c.network_id = %(network)s
"""
_LOCKED: Final = f"""
SELECT {select_list(_Locked, "c")} FROM chain_cursor c WHERE network_id = %(network)s FOR UPDATE
"""


def read(network_id: int) -> Position | None:
    """The position of a network; None if it isn't followed."""
    rows = fetch_rows(Position, _POSITION, {"network": network_id}, prepare=True)
    return rows[0] if rows else None


def make(network_id: int) -> None:
    """Give a network that is followed its cursor, if it has none."""
    fetch(
        "INSERT INTO chain_cursor (network_id) SELECT network_id FROM chain_blockchain"
        " WHERE network_id = %(network)s AND active ON CONFLICT DO NOTHING",
        {"network": network_id},
        prepare=True,
    )


def lock(at: Position, *, halted: bool = False) -> int:
    """Lock the cursor until the transaction ends; the number of the last row of the outbox.

    Raises ``Elsewhere`` unless everything is as it was read. With ``halted`` that includes the
    reason of the halt; otherwise the network must not be halted.
    """
    rows = fetch_rows(_Locked, _LOCKED, {"network": at.network_id}, prepare=True)
    if not rows:
        raise Elsewhere
    [row] = rows
    as_read = (at.number, at.hash or None, at.contracts, at.halted if halted else None)
    if (row.number, row.hash, row.contracts, row.halted) != as_read:
        raise Elsewhere
    return row.outbox


def hashes(network_id: int, first: int, last: int) -> Hashes:
    """The hashes of the blocks in this range that were read and stand."""
    rows = fetch_rows(
        BlockRow,
        f"SELECT {select_list(BlockRow, 'b')} FROM chain_block b WHERE network_id = %(network)s"
        " AND canonical AND number BETWEEN %(first)s AND %(last)s",
        {"network": network_id, "first": first, "last": last},
        prepare=True,
    )
    return {row.number: row.hash for row in rows}


def floor(at: Position) -> int:
    """The height below which no other chain is looked for: the highest block that is final, of
    those that are kept, or the lowest one that is kept."""
    height = fetch_value(
        int,
        "SELECT COALESCE(max(number) FILTER (WHERE number <= %(final)s), min(number))"
        " FROM chain_block WHERE network_id = %(network)s AND canonical",
        {"final": at.final, "network": at.network_id},
        prepare=True,
    )
    return (at.number or 0) if height is None else height


def lowest(network_id: int) -> int | None:
    """The height of the lowest block whose hash is stored."""
    return fetch_value(
        int,
        "SELECT min(number) FROM chain_block WHERE network_id = %(network)s AND canonical",
        {"network": network_id},
        prepare=True,
    )


_PATIENCE: Final = 0.2  # seconds


@contextmanager
def alone(network_id: int) -> Iterator[bool]:
    """Whether this process is the only one in here with this network. It saves work that would
    be dropped; nothing relies on it. A process that arrives while another one is about to leave
    waits for
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
