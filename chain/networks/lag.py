"""How far each network's index is behind its chain: in seconds, and in blocks where that is known.

Metrics, ``doctor``, ``chain_status`` and the admin all show what is computed here, with the
database's clock. What isn't known is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from objects.database.row_types import select_list
from objects.database.statements import fetch_rows

FRESH: Final = 60.0
"""Seconds for which a head is current after a successful poll, or three polling intervals if that
is more."""
_INTERVALS: Final = 3


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a network.

    ``seconds`` is the time since the last successful poll: one in which a provider named a newest
    block that continues the chain that was read. None if there was none yet. ``blocks`` is the
    distance from the last block that was read to that head, None unless the head is current.
    """

    seconds: float | None = None
    blocks: int | None = None


UNKNOWN: Final = Lag()


class _Row(NamedTuple):
    network_id: int
    seconds: Annotated[float | None, "extract(epoch FROM statement_timestamp() - {row}.looked_at)"]
    blocks: Annotated[int | None, "{row}.head - {row}.number"]
    interval: Annotated[float | None, "b.poll_interval / 1000.0"]


_LAGS = f"""
SELECT {select_list(_Row, "c")}
  FROM chain_blockchain b JOIN chain_cursor c USING (network_id)
 WHERE %(network)s::bigint IS NULL OR b.network_id = %(network)s::bigint
"""


def lags(network_id: int | None = None) -> dict[int, Lag]:
    """The lag of each network, or of one, by its id. Networks without a cursor aren't in it."""
    rows = fetch_rows(_Row, _LAGS, {"network": network_id}, prepare=True)
    return {row.network_id: _lag(row) for row in rows}


def _lag(row: _Row) -> Lag:
    if row.seconds is None or row.interval is None:
        return UNKNOWN
    age = max(0.0, row.seconds)
    is_current = age <= max(FRESH, _INTERVALS * row.interval)
    return Lag(age, max(0, row.blocks) if is_current and row.blocks is not None else None)
