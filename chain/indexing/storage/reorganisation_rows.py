"""The statement on ``chain_reorganisation``."""

from __future__ import annotations

from objects.database.statements import fetch


def insert(
    network_id: int,
    fork: tuple[int, str],
    old: tuple[int, str],
    *,
    removed_events: int,
    transactions: int,
) -> None:
    """Store, in the transaction that reverts the blocks, that a chain was left.

    ``fork`` is the last block that stays, ``old`` the last one before, each by height and hash.
    """
    fetch(
        "INSERT INTO chain_reorganisation (network_id, fork_number, fork_hash, old_number,"
        " old_hash, depth, removed_events, transactions, seen_at)"
        " VALUES (%(network)s, %(fork_number)s, %(fork_hash)s, %(old_number)s, %(old_hash)s,"
        " %(depth)s, %(removed)s, %(transactions)s, statement_timestamp())",
        {
            "network": network_id,
            "fork_number": fork[0],
            "fork_hash": fork[1],
            "old_number": old[0],
            "old_hash": old[1],
            "depth": old[0] - fork[0],
            "removed": removed_events,
            "transactions": transactions,
        },
        prepare=True,
    )
