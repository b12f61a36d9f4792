"""How far each network's index is behind its chain: in seconds, and in blocks where that is known.

Metrics, ``doctor``, ``chain_status`` and the admin all show what is computed here, with the
database's clock. What isn't known is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from objects.database.statements import fetch

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

_LAGS = """
SELECT b.network_id, extract(epoch FROM statement_timestamp() - c.looked_at), c.head - c.number,
       b.poll_interval / 1000.0
  FROM chain_blockchain b JOIN chain_cursor c USING (network_id)
 WHERE %s::bigint IS NULL OR b.network_id = %s::bigint
"""


def lags(network_id: int | None = None) -> dict[int, Lag]:
    """The lag of each network, or of one, by its id. Networks without a cursor aren't in it."""
    rows = fetch(_LAGS, (network_id, network_id), prepare=True)
    return {int(row[0]): _lag(*row[1:]) for row in rows if row[0] is not None}


def _lag(seconds: str | None, blocks: str | None, interval: str | None) -> Lag:
    if seconds is None or interval is None:
        return UNKNOWN
    age = max(0.0, float(seconds))
    is_current = age <= max(FRESH, _INTERVALS * float(interval))
    return Lag(age, max(0, int(blocks)) if is_current and blocks is not None else None)
