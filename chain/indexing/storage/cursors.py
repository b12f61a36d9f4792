"""The statements on ``chain_cursor`` that polls and backfills run."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from chain.indexing.storage.outbox_reader import CHANNEL
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_values

_AGE: Final = "COALESCE(extract(epoch FROM statement_timestamp() - {row}.looked_at), 1e9)"


class Position(NamedTuple):
    """The cursor of a network as it was read, and the settings of the network that matter.

    ``number`` and ``hash`` are the last block that was read, None before the first poll.
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


class LockedCursor(NamedTuple):
    """What a transaction that has the lock of a cursor compares and continues."""

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
_LOCK: Final = f"""
SELECT {select_list(LockedCursor, "c")} FROM chain_cursor c
 WHERE network_id = %(network)s FOR UPDATE
"""


def read(network_id: int) -> Position | None:
    """Return the position of a network; None if it isn't active or has no cursor."""
    rows = fetch_rows(Position, _POSITION, {"network": network_id}, prepare=True)
    return rows[0] if rows else None


def make(network_id: int) -> None:
    """Insert the cursor of a network that is active and has none."""
    fetch(
        "INSERT INTO chain_cursor (network_id) SELECT network_id FROM chain_blockchain"
        " WHERE network_id = %(network)s AND active ON CONFLICT DO NOTHING",
        {"network": network_id},
        prepare=True,
    )


def lock(network_id: int) -> LockedCursor | None:
    """Lock the cursor of a network until the transaction ends. Return None if there is none."""
    rows = fetch_rows(LockedCursor, _LOCK, {"network": network_id}, prepare=True)
    return rows[0] if rows else None


def begin(
    network_id: int, number: int, hash_: str, *, head: int, safe: int | None, finalized: int | None
) -> None:
    """Put a locked cursor to the first block of its network that is read."""
    fetch(
        "UPDATE chain_cursor SET number = %(number)s, hash = %(hash)s, began_at = %(number)s,"
        " head = %(head)s, safe = %(safe)s, finalized = %(finalized)s,"
        " moved_at = statement_timestamp(), looked_at = statement_timestamp(),"
        " trouble = NULL WHERE network_id = %(network)s",
        {
            "number": number,
            "hash": hash_,
            "head": head,
            "safe": safe,
            "finalized": finalized,
            "network": network_id,
        },
        prepare=True,
    )


def advance(
    network_id: int,
    number: int,
    hash_: str,
    *,
    stored: int,
    head: int | None,
    safe: int | None,
    finalized: int | None,
) -> None:
    """Move a locked cursor forward, after ``stored`` rows were added to the outbox."""
    fetch(
        "UPDATE chain_cursor SET number = %(number)s, hash = %(hash)s,"
        " outbox = outbox + %(stored)s, head = %(head)s,"
        " safe = GREATEST(safe, %(safe)s), finalized = GREATEST(finalized, %(finalized)s),"
        " trouble = NULL,"
        " moved_at = statement_timestamp(), looked_at = statement_timestamp()"
        " WHERE network_id = %(network)s",
        {
            "number": number,
            "hash": hash_,
            "stored": stored,
            "head": head,
            "safe": safe,
            "finalized": finalized,
            "network": network_id,
        },
        prepare=True,
    )


def move_back(network_id: int, number: int, hash_: str, *, removed: int) -> None:
    """Move a locked cursor back, after ``removed`` rows were added to the outbox."""
    fetch(
        "UPDATE chain_cursor SET number = %(number)s, hash = %(hash)s,"
        " outbox = outbox + %(removed)s, safe = LEAST(safe, %(number)s),"
        " moved_at = statement_timestamp() WHERE network_id = %(network)s",
        {"number": number, "hash": hash_, "removed": removed, "network": network_id},
        prepare=True,
    )


def note_poll(at: Position, *, safe: int | None, finalized: int | None) -> None:
    """Store what a successful poll has found that found no blocks to be read, unless the cursor
    has moved or the network is halted."""
    fetch(
        "UPDATE chain_cursor SET head = %(head)s, safe = GREATEST(safe, %(safe)s),"
        " finalized = GREATEST(finalized, %(finalized)s), trouble = NULL,"
        " looked_at = statement_timestamp()"
        " WHERE network_id = %(network)s AND number = %(number)s AND hash = %(hash)s"
        " AND halted IS NULL",
        {
            "head": at.head,
            "safe": safe,
            "finalized": finalized,
            "network": at.network_id,
            "number": at.number,
            "hash": at.hash,
        },
        prepare=True,
    )


def note_trouble_at(at: Position, trouble: str) -> None:
    """Store why a poll failed, unless the cursor has moved or the network is halted."""
    fetch(
        "UPDATE chain_cursor SET trouble = %(trouble)s WHERE network_id = %(network)s"
        " AND number = %(number)s AND hash = %(hash)s"
        " AND halted IS NULL AND trouble IS DISTINCT FROM %(trouble)s",
        {"trouble": trouble, "network": at.network_id, "number": at.number, "hash": at.hash},
        prepare=True,
    )


def note_trouble(network_id: int, trouble: str) -> bool:
    """Store why nothing could be read, unless the network is halted; return whether it's new."""
    rows = fetch_values(
        bool,
        "UPDATE chain_cursor SET trouble = %(trouble)s WHERE network_id = %(network)s"
        " AND halted IS NULL AND trouble IS DISTINCT FROM %(trouble)s RETURNING true",
        {"trouble": trouble, "network": network_id},
        prepare=True,
    )
    return bool(rows)


class Capabilities(NamedTuple):
    """What the headers of a network are known to prove (``chain.indexing.verification``)."""

    proves_hashes: bool
    proves_receipts: bool
    hashes_until: int | None


_CAPABILITIES: Final = f"""
SELECT {select_list(Capabilities, "c")} FROM chain_cursor c WHERE network_id = %(network)s
"""


def capabilities(network_id: int) -> Capabilities | None:
    """Return what the headers of a network prove; None for a network without a cursor."""
    rows = fetch_rows(Capabilities, _CAPABILITIES, {"network": network_id}, prepare=True)
    return rows[0] if rows else None


def learn(network_id: int, *, hashes: bool, hashes_again: bool, receipts: bool) -> None:
    """Store that headers prove their hashes, that they do so again above ``hashes_until``, and that
    they prove receipts, for each that is true."""
    fetch(
        "UPDATE chain_cursor SET proves_hashes = proves_hashes OR %(hashes)s,"
        " hashes_until = CASE WHEN %(again)s THEN NULL ELSE hashes_until END,"
        " proves_receipts = proves_receipts OR %(receipts)s WHERE network_id = %(network)s",
        {
            "hashes": hashes,
            "again": hashes_again,
            "receipts": receipts,
            "network": network_id,
        },
        prepare=True,
    )


def set_outbox(network_id: int, seq: int) -> None:
    """Store that the outbox of a locked cursor ends with ``seq``, and notify its consumers."""
    fetch(
        "UPDATE chain_cursor SET outbox = %(seq)s WHERE network_id = %(network)s",
        {"seq": seq, "network": network_id},
        prepare=True,
    )
    notify(network_id, seq)


def notify(network_id: int, seq: int) -> None:
    """Notify consumers of the outbox, when the transaction commits, of rows up to ``seq``."""
    fetch(
        "SELECT pg_notify(%(channel)s, %(text)s)",
        {"channel": CHANNEL, "text": f"{network_id} {seq}"},
        prepare=True,
    )
