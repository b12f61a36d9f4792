"""The statements on ``chain_block``: headers of the chain that is indexed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from chain.core.blocks.forks import Hashes
from chain.core.node import Header
from chain.models.stored import BlockRow
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_value

Block = tuple[int, str]
"""Height and hash."""

_CANONICAL: Final = f"""
SELECT {select_list(BlockRow, "b")} FROM chain_block b WHERE network_id = %(network)s AND canonical
"""


def put(network_id: int, headers: Sequence[Header]) -> None:
    """Store headers of the chain; those that a reorganisation removed are in it again."""
    fetch(
        "INSERT INTO chain_block (network_id, hash, number, parent_hash, timestamp, canonical)"
        " SELECT %(network)s, hash, number, parent_hash, timestamp, true"
        " FROM unnest(%(hashes)s::text[], %(heights)s::bigint[], %(parents)s::text[],"
        " %(times)s::bigint[])"
        " AS h(hash, number, parent_hash, timestamp)"
        " ON CONFLICT (network_id, hash) DO UPDATE SET canonical = true",
        {
            "network": network_id,
            "hashes": [header.hash for header in headers],
            "heights": [header.height for header in headers],
            "parents": [header.parent_hash for header in headers],
            "times": [header.time for header in headers],
        },
        prepare=True,
    )


def remove_above(network_id: int, number: int) -> None:
    """Mark headers above this height as no longer in the chain."""
    fetch(
        "UPDATE chain_block SET canonical = false"
        " WHERE network_id = %(network)s AND canonical AND number > %(number)s",
        {"network": network_id, "number": number},
        prepare=True,
    )


def between(network_id: int, first: int, last: int) -> list[Block]:
    """Heights and hashes of the headers of the chain in this range, in order."""
    rows = fetch_rows(
        BlockRow,
        f"{_CANONICAL} AND number BETWEEN %(first)s AND %(last)s ORDER BY number",
        {"network": network_id, "first": first, "last": last},
        prepare=True,
    )
    return [(row.number, row.hash) for row in rows]


def at_heights(network_id: int, heights: Collection[int]) -> list[Block]:
    """As ``between``, of single heights."""
    rows = fetch_rows(
        BlockRow,
        f"{_CANONICAL} AND number = ANY(%(heights)s::bigint[]) ORDER BY number",
        {"network": network_id, "heights": [*heights]},
        prepare=True,
    )
    return [(row.number, row.hash) for row in rows]


def highest(network_id: int, most: int) -> Block | None:
    """The highest block up to ``most`` whose header is stored."""
    rows = fetch_rows(
        BlockRow,
        f"{_CANONICAL} AND number <= %(most)s ORDER BY number DESC LIMIT 1",
        {"network": network_id, "most": most},
        prepare=True,
    )
    return (rows[0].number, rows[0].hash) if rows else None


def hashes(network_id: int, first: int, last: int) -> Hashes:
    """The hashes of the blocks of the chain in this range, by height."""
    return dict(between(network_id, first, last))


def floor(network_id: int, final: int) -> int | None:
    """The highest height up to ``final`` with a stored header, or the lowest one above it."""
    return fetch_value(
        int,
        "SELECT COALESCE(max(number) FILTER (WHERE number <= %(final)s), min(number))"
        " FROM chain_block WHERE network_id = %(network)s AND canonical",
        {"final": final, "network": network_id},
        prepare=True,
    )


def lowest(network_id: int) -> int | None:
    """The height of the lowest block whose hash is stored."""
    return fetch_value(
        int,
        "SELECT min(number) FROM chain_block WHERE network_id = %(network)s AND canonical",
        {"network": network_id},
        prepare=True,
    )
