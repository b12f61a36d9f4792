"""How final a block is, as SQL: computed when it is read, since it changes with every new block.

A height counts as far as the network has been read: the cursor's ``safe`` and ``finalized`` are the
network's (``chain.core.blocks.final_heights``), and may be above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LATEST, SAFE, FINAL = LEVELS = ("latest", "safe", "final")
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

_LOWEST: Final = -(2**63)
_FINAL, _SAFE = height_of(FINAL), height_of(SAFE)
_TOP: Final = f"GREATEST({_FINAL}, {_SAFE})"  # of those that are known
_RANGES: Final[Mapping[frozenset[str], tuple[str | None, str | None]]] = {
    frozenset({FINAL}): (None, _FINAL),
    frozenset({FINAL, SAFE}): (None, _TOP),
    frozenset({SAFE}): (_FINAL, _SAFE),
    frozenset({SAFE, LATEST}): (_FINAL, None),
    frozenset({LATEST}): (_TOP, None),
}
"""Between which heights of the cursor ``f`` the events of these finalities are."""


def is_one_of(values: frozenset[str]) -> str | None:
    """The condition that ``OF_EVENT`` is one of these, as a join with the cursors, which indexes on
    the network or the height serve; None if there is none.

    ``chain_cursor_text`` makes it a join: each event has at most one cursor. What has a lower bound
    has it twice, the second time that of all networks together, since PostgreSQL takes a bound that
    depends on the network for a third of the table, and reads all of it instead.
    """
    heights = _RANGES.get(values & {LATEST, SAFE, FINAL})
    if heights is None:
        return None
    lower, upper = heights
    parts = [] if upper is None else [f"{{row}}.block_number <= {upper}"]
    lowest = ""
    if lower is not None:
        parts.append(f"{{row}}.block_number > COALESCE({lower}, {_LOWEST})")
        lowest = (
            f"{{row}}.block_number > (SELECT min(COALESCE({lower}, {_LOWEST})) FROM chain_cursor f"
            " WHERE f.number IS NOT NULL) AND "
        )
    return (
        f"({lowest}EXISTS (SELECT 1 FROM chain_cursor f WHERE f.number IS NOT NULL"
        f" AND f.network_id::text = {{row}}.network_id AND {' AND '.join(parts)}))"
    )


OF_NETWORK: Final = (
    "SELECT jsonb_strip_nulls(jsonb_build_object('head', f.head, 'readUpTo', f.number,"
    f" 'safe', {height_of(SAFE)}, 'final', {height_of(FINAL)}))"
    " FROM chain_cursor f WHERE f.network_id = {row}.network_id AND f.number IS NOT NULL"
)
"""The heights of a network: its newest block, up to which one it is read, and which are safe and
final of these; null before the first block is read."""
