"""Statements about the blocks that monitored transactions are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from chain.core.transactions.states import FINALIZED, SAFE
from chain.models.stored import TransactionRow
from chain.monitor.storage.rows import TOUCHED, select_transactions
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_values

# What may still change by being in a block: all but those that are done with.
_OPEN: Final = (
    "(t.status IN ('pending', 'stalled') OR t.finality IN ('included', 'safe', 'orphaned'))"
)
_UNFINAL: Final = "t.finality IN ('included', 'safe')"
_AFFECTED: Final = f"""
{select_transactions("statement_timestamp()")}
 WHERE t.network_id = %(network)s
   AND (t.hash = ANY(%(seen)s::text[]) AND {_OPEN}
        OR {_UNFINAL} AND t.block_number = ANY(%(heights)s::bigint[])
        AND NOT t.hash = ANY(%(seen)s::text[])
        AND NOT t.block_hash = ANY(%(block_hashes)s::text[]))
 ORDER BY t.object_id FOR UPDATE
"""


class Place(NamedTuple):
    """Where a transaction is stored to be."""

    hash: str
    block_hash: str | None
    finality: str | None


_PLACES: Final = f"""
SELECT {select_list(Place, "t")} FROM chain_transaction t
 WHERE t.network_id = %(network)s AND t.hash = ANY(%(hashes)s::text[]) AND {_OPEN}
"""


def open_places(network_id: int, hashes: Iterable[str]) -> list[Place]:
    """Of these transactions, those that are monitored and may still change by being in a block."""
    params = {"network": str(network_id), "hashes": [*hashes]}
    return fetch_rows(Place, _PLACES, params, prepare=True)


def lock_affected(
    network_id: int, seen: Iterable[str], blocks: Sequence[tuple[int, str]]
) -> list[TransactionRow]:
    """Lock and return the transactions that these blocks concern: the open ones among ``seen``,
    which are in them, and those that were in other blocks of these heights."""
    return fetch_rows(
        TransactionRow,
        _AFFECTED,
        {
            "network": str(network_id),
            "seen": [*seen],
            "heights": [height for height, _ in blocks],
            "block_hashes": [block_hash for _, block_hash in blocks],
        },
        prepare=True,
    )


def check_now(object_ids: Sequence[str]) -> None:
    """Have these transactions checked at the next opportunity."""
    if object_ids:
        fetch(
            "UPDATE chain_transaction SET next_check_at = statement_timestamp()"
            " WHERE object_id = ANY(%(ids)s::text[])",
            {"ids": [*object_ids]},
            prepare=True,
        )


def check_stalled_above(network_id: int, above: int) -> None:
    """Have stalled transactions checked whose late receipt is of a block above this height."""
    fetch(
        "UPDATE chain_transaction SET next_check_at = statement_timestamp()"
        " WHERE network_id = %(network)s AND next_check_at IS NOT NULL AND status = 'stalled'"
        " AND CASE WHEN jsonb_typeof(late_receipt -> 'blockNumber') = 'number'"
        " THEN (late_receipt -> 'blockNumber')::numeric > %(above)s ELSE false END",
        {"network": str(network_id), "above": above},
        prepare=True,
    )


def lock_included_above(network_id: int, above: int) -> list[str]:
    """Lock the transactions in blocks above this height that aren't final; return their ids."""
    return fetch_values(
        str,
        "SELECT t.object_id FROM chain_transaction t"
        f" WHERE t.network_id = %(network)s AND t.block_number > %(above)s AND {_UNFINAL}"
        " ORDER BY t.object_id FOR UPDATE",
        {"network": str(network_id), "above": above},
        prepare=True,
    )


class Marks(NamedTuple):
    """How many transactions were marked, and how many are in blocks that are gone."""

    marked: int
    lost: int


def mark(network_id: int, hashes: Mapping[int, str], finalized: int) -> Marks:
    """Mark transactions in these blocks, given by height and hash, as final up to ``finalized`` and
    as safe above. Have those checked that are stored to be in another block of the height."""
    heights = sorted(hashes)
    [marks] = fetch_rows(
        Marks,
        "WITH b AS (SELECT * FROM unnest(%(numbers)s::bigint[], %(hashes)s::text[])"
        " AS b(number, hash)),"
        " held AS MATERIALIZED (SELECT h.object_id, h.block_hash = b.hash AS stays,"
        f" CASE WHEN b.number <= %(final)s THEN '{FINALIZED}' ELSE '{SAFE}' END AS reached"
        " FROM chain_transaction h JOIN b ON b.number = h.block_number"
        " WHERE h.network_id = %(network)s AND h.finality IN ('included', 'safe')"
        " ORDER BY h.object_id FOR UPDATE OF h),"
        " marked AS (UPDATE chain_transaction t SET finality = held.reached,"
        f" next_check_at = NULL, updated_at = {TOUCHED} FROM held"
        " WHERE t.object_id = held.object_id AND held.stays AND t.finality <> held.reached"
        " RETURNING 1),"
        " lost AS (UPDATE chain_transaction t SET next_check_at = statement_timestamp()"
        " FROM held WHERE t.object_id = held.object_id AND NOT held.stays RETURNING 1)"
        " SELECT (SELECT count(*) FROM marked), (SELECT count(*) FROM lost)",
        {
            "numbers": heights,
            "hashes": [hashes[height] for height in heights],
            "final": finalized,
            "network": str(network_id),
        },
        prepare=True,
    )
    return marks
