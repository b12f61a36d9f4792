"""Statements that begin to monitor a transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from chain.core.transactions.sightings import Sighting
from objects.core.names import new_object_id
from objects.database.statements import fetch, fetch_rows, fetch_value, fetch_values
from objects.sql.rows import NOW

_UNKNOWN: Final = (
    "hash = %(hash)s AND network_id <> %(network)s AND status IN ('pending', 'stalled')"
    " AND from_address IS NULL AND block_number IS NULL AND late_receipt IS NULL"
)


class Started(NamedTuple):
    """The record of a hash, and whether it was inserted just now."""

    object_id: str
    is_new: bool


def insert(network_id: int, tx_hash: str, sighting: Sighting) -> Started:
    """Insert a pending record that is due now, unless the hash has one. The caller has its lock."""
    [row] = fetch_rows(
        Started,
        "WITH new AS (INSERT INTO chain_transaction (object_id, created_at, updated_at, data,"
        " hash, network_id, status, attempts, next_check_at, failed_checks, missing_checks,"
        ' nonce, from_address, "to")'
        " SELECT %(id)s, now.ms, now.ms, '{}', %(hash)s, %(network)s, 'pending', 0, now.ms, 0, 0,"
        " %(nonce)s::numeric, %(from)s, %(to)s"
        f" FROM (SELECT {NOW} AS ms) now"
        " ON CONFLICT (hash) DO NOTHING RETURNING object_id)"
        " SELECT object_id, true FROM new UNION ALL"
        " SELECT object_id, false FROM chain_transaction WHERE hash = %(hash)s LIMIT 1",
        {
            "id": new_object_id(),
            "hash": tx_hash,
            "network": str(network_id),
            "nonce": sighting.nonce,
            "from": sighting.from_address,
            "to": sighting.to,
        },
        prepare=True,
    )
    return row


def id_of(tx_hash: str) -> str | None:
    """Return the id of the record of a hash, or None."""
    sql = "SELECT object_id FROM chain_transaction WHERE hash = %(hash)s"
    return fetch_value(str, sql, {"hash": tx_hash}, prepare=True)


def check_from_creation(object_id: str) -> None:
    """Have a record checked that has just been stored."""
    fetch(
        "UPDATE chain_transaction SET next_check_at = created_at WHERE object_id = %(id)s",
        {"id": object_id},
        prepare=True,
    )


def is_unknown_elsewhere(network_id: int, tx_hash: str) -> bool:
    """Whether the record of a hash is of another network, whose nodes have never known it."""
    params = {"hash": tx_hash, "network": str(network_id)}
    sql = f"SELECT true FROM chain_transaction WHERE {_UNKNOWN}"
    return bool(fetch_values(bool, sql, params, prepare=True))


def move(network_id: int, tx_hash: str) -> None:
    """Have a record that ``is_unknown_elsewhere`` be of this network, as if it began now. Part of
    the caller's transaction."""
    fetch(
        "UPDATE chain_transaction SET network_id = %(network)s, status = 'pending', attempts = 0,"
        " last_checked = NULL, pending_since = now.ms, next_check_at = now.ms, failed_checks = 0,"
        " missing_since = NULL, missing_checks = 0, updated_at = GREATEST(updated_at, now.ms)"
        f" FROM (SELECT {NOW} AS ms) now"
        f" WHERE {_UNKNOWN}",
        {"hash": tx_hash, "network": str(network_id)},
        prepare=True,
    )
