"""How far each network's index is behind its chain: in seconds, and in blocks where that is known.

Metrics, ``doctor``, ``chain_status`` and the admin all show what is computed here, with the
database's clock. What isn't known is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Now

from chain.models import Blockchain, Cursor
from objects.database.orm import orm_queries

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


def lags(network_id: int | None = None) -> dict[int, Lag]:
    """The lag of each network, or of one, by its id. Networks without a cursor aren't in it."""
    networks = Blockchain.objects.filter(network_id=OuterRef("network_id"))
    cursors = Cursor.objects.annotate(
        interval=Subquery(networks.values("poll_interval")), age=Now() - F("looked_at")
    ).filter(interval__isnull=False)
    if network_id is not None:
        cursors = cursors.filter(network_id=network_id)
    with orm_queries():
        rows = cursors.values_list("network_id", "age", "interval", F("head") - F("number"))
        return {
            network_id: _lag(age, interval, blocks) for network_id, age, interval, blocks in rows
        }


def _lag(age: timedelta | None, interval: int, blocks: int | None) -> Lag:
    """``interval`` is milliseconds."""
    if age is None:
        return UNKNOWN
    seconds = max(0.0, age.total_seconds())
    is_current = seconds <= max(FRESH, _INTERVALS * interval / 1000)
    return Lag(seconds, max(0, blocks) if is_current and blocks is not None else None)
