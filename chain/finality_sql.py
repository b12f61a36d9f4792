"""How final a block is, as SQL: computed when it is read, since it changes with every new block.

A height counts as far as the network has been read: the cursor's ``safe`` and ``finalized`` are the
network's (``chain.core.finality``), and may be above it.
"""

from __future__ import annotations

from typing import Final

LATEST, SAFE, FINAL = "latest", "safe", "final"
_COLUMNS: Final = {SAFE: "safe", FINAL: "finalized"}


def _up_to(height: str) -> str:
    """This height of the row's network. All networks' are read once for a statement, which takes
    less than a look at one network for each row."""
    return (
        f"((SELECT jsonb_object_agg(f.network_id, {height}) FROM chain_cursor f"
        f" WHERE f.number IS NOT NULL AND {height} IS NOT NULL) ->> {{row}}.network_id)::bigint"
    )


def height_of(level: str) -> str:
    """The height of the cursor ``f`` up to which its network is ``safe`` or ``final``, as far as it
    has been read; null if that isn't known."""
    return (
        f"(CASE WHEN f.{_COLUMNS[level]} IS NOT NULL THEN LEAST(f.{_COLUMNS[level]}, f.number) END)"
    )


OF_EVENT: Final = (
    f"CASE WHEN {{row}}.block_number <= {_up_to(height_of(FINAL))} THEN '{FINAL}'"
    f" WHEN {{row}}.block_number <= {_up_to(height_of(SAFE))} THEN '{SAFE}'"
    f" WHEN {{row}}.block_number IS NOT NULL AND {_up_to('f.number')} IS NOT NULL"
    f" THEN '{LATEST}' END"
)
"""The finality of an event; null where its network isn't synced or the event has no block."""

OF_NETWORK: Final = (
    "SELECT jsonb_strip_nulls(jsonb_build_object('head', f.head, 'readUpTo', f.number,"
    f" 'safe', {height_of(SAFE)}, 'final', {height_of(FINAL)}))"
    " FROM chain_cursor f WHERE f.network_id = {row}.network_id AND f.number IS NOT NULL"
)
"""The heights of a network: its newest block, up to which one it is read, and which are safe and
final of these; null before the first block is read."""
