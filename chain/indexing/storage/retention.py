"""Remove expired rows, some thousand at a time.

- headers far below what is final: no reorganisation goes there;
- events that a reorganisation has removed, once their height is final and has been read: what came
  in their place is stored by then;
- rows of the outbox after ``OUTBOX_KEEP`` days, but for each network's newest;
- backfills that were over three months ago, and transactions that the service has sent, if they
  are as old and a later one of their account is final.

A network that is halted keeps all of it, since an operator has to look into it.
"""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import Any, Final

from backend.kernel.errors import UnderMaintenance
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from objects.database import maintenance
from objects.database.statements import fetch_values

SECONDS: Final = 60.0  # of one run; the next one goes on
HEADERS_BELOW_FINAL: Final = 256
_AT_ONCE: Final = 5000
_KEPT: Final = 90  # days, of backfills and of what was sent

log = get_logger("chain")

_FINAL = """
  JOIN chain_cursor c ON c.network_id{cast} = t.network_id AND c.halted IS NULL
   AND LEAST(c.finalized, c.number)
"""
# Locked rows are being changed: next time.
_SOME = f"LIMIT {_AT_ONCE} FOR UPDATE OF t SKIP LOCKED"
_HEADERS = f"""
SELECT t.ctid FROM chain_block t {_FINAL.format(cast="")} - {HEADERS_BELOW_FINAL} > t.number {_SOME}
"""
_EVENTS = f"""
SELECT t.ctid FROM chain_contract_event t {_FINAL.format(cast="::text")} >= t.block_number
 WHERE NOT t.canonical {_SOME}
"""
_OUTBOX = f"""
SELECT t.ctid FROM chain_outbox t
  LEFT JOIN chain_cursor c ON c.network_id = t.network_id
 WHERE t.created_at < statement_timestamp() - make_interval(days => %(days)s)
   AND t.seq < COALESCE(c.outbox, t.seq + 1) AND c.halted IS NULL
 ORDER BY t.created_at {_SOME}
"""
_BACKFILLS = f"""
SELECT t.ctid FROM chain_backfill t
 WHERE t.done_at < statement_timestamp() - make_interval(days => %(days)s) {_SOME}
"""
# A nonce that is below a final one is used permanently, by one of the transactions that were
# signed for it or by another.
_SENDINGS = f"""
SELECT t.ctid FROM chain_sending t
 WHERE t.created_at < statement_timestamp() - make_interval(days => %(days)s)
   AND t.state IN ('final', 'replaced', 'refused', 'lost')
   AND t.nonce < (SELECT max(f.nonce) FROM chain_sending f WHERE f.network_id = t.network_id
                  AND f.account = t.account AND f.state = 'final') {_SOME}
"""


def prune() -> dict[str, int]:
    """Remove it; how many rows of which table."""
    end = monotonic() + SECONDS
    removed = {}
    try:
        with maintenance.recording():
            for table, sql, params in (
                ("chain_block", _HEADERS, {}),
                ("chain_contract_event", _EVENTS, {}),
                ("chain_outbox", _OUTBOX, {"days": service_settings.OUTBOX_KEEP}),
                ("chain_backfill", _BACKFILLS, {"days": _KEPT}),
                ("chain_sending", _SENDINGS, {"days": _KEPT}),
            ):
                removed[table] = _remove(table, sql, params, end)
    except UnderMaintenance:
        pass
    if any(removed.values()):
        log.info("removed what is old", **removed)
    return removed


# Not what is stored after the removal: the network may have been added again.
_EVENTS_OF: Final = f"""
SELECT t.ctid FROM chain_contract_event t
 WHERE network_id = %(network)s AND created_at <= %(until)s::timestamptz LIMIT {_AT_ONCE}
"""
_OUTBOX_OF: Final = f"""
SELECT t.ctid FROM chain_outbox t JOIN chain_cursor c ON c.network_id = t.network_id
 WHERE t.network_id = %(network)s AND t.seq < c.outbox LIMIT {_AT_ONCE}
"""


def statement_time() -> str:
    """Return the database's time, as ``remove_network`` takes it."""
    [now] = fetch_values(str, "SELECT statement_timestamp()", (), prepare=True)
    return now


def remove_network(network_id: int, until: str) -> None:
    """Remove the events of a network that were stored up to a time, and its rows of the outbox but
    for the newest. Raises ``UnderMaintenance``."""
    events = {"network": str(network_id), "until": until}
    # A batch is smaller where ``prune`` removes rows at the same moment.
    while _remove("chain_contract_event", _EVENTS_OF, events):
        pass
    while _remove("chain_outbox", _OUTBOX_OF, {"network": network_id}):
        pass


def _remove(table: str, chosen: str, params: dict[str, Any], end: float = inf) -> int:
    """Delete the chosen rows of a table, batch after batch, each in a transaction of its own."""
    total = 0
    while True:
        with maintenance.writing():
            [count] = fetch_values(
                int,
                f"WITH gone AS (DELETE FROM {table} WHERE ctid = ANY(ARRAY({chosen})) RETURNING 1)"
                " SELECT count(*) FROM gone",
                params,
                prepare=False,
            )
        total += count
        if count < _AT_ONCE or monotonic() > end:
            return total
