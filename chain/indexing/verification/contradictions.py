"""Contradictions of providers, for operators and for the audit that follows each of them."""

from __future__ import annotations

from time import monotonic
from typing import Final

from backend.logs.setup import get_logger
from chain import rpc
from chain.core.node import Node
from chain.indexing.verification.schemes import Scheme
from chain.models.indexing import Recheck
from chain.rpc.endpoints import given_for
from objects.database.statements import fetch

_LONGEST: Final = 300
_LOGGED_EVERY: Final = 10.0  # seconds
_logged: dict[tuple[int, str, str], float] = {}

log = get_logger("chain")

_NOTE: Final = """
WITH noted AS (
    UPDATE chain_cursor
       SET contradictions = contradictions + %s, contradicted_at = statement_timestamp(),
           contradiction = %s
     WHERE network_id = %s
    RETURNING network_id, COALESCE(audited_before, audited, began_at) + 1 AS first, number
)
INSERT INTO chain_recheck AS r (network_id, kind, next_block, last_block)
SELECT network_id, %s, first, number FROM noted WHERE %s AND first <= number
    ON CONFLICT (network_id, kind) DO UPDATE
   SET next_block = LEAST(r.next_block, EXCLUDED.next_block),
       last_block = GREATEST(r.last_block, EXCLUDED.last_block),
       made_at = statement_timestamp()
"""
_RECHECK: Final = """
INSERT INTO chain_recheck AS r (network_id, kind, next_block, last_block)
VALUES (%s, %s, %s, %s)
    ON CONFLICT (network_id, kind) DO UPDATE
   SET next_block = LEAST(r.next_block, EXCLUDED.next_block),
       last_block = GREATEST(r.last_block, EXCLUDED.last_block),
       made_at = statement_timestamp()
"""


def note_contradiction(
    node: Node,
    height: int,
    text: str,
    scheme: Scheme,
    *,
    count: int = 1,
    is_settled: bool = False,
) -> None:
    """Count a block, and log it every ten seconds at most by provider and text. ``count`` is 0 for
    one that was counted before. ``is_settled`` means that the correct logs were found; otherwise
    the provider is left alone for a minute, if it isn't the only one.

    If the scheme queues rechecks, the blocks since the audit before the last one are compared with
    their receipts: the provider may have returned other wrong data before.
    """
    message = f"{node.provider}, block {height}: {text}"[:_LONGEST]
    fetch(
        _NOTE,
        (count, message, node.network_id, Recheck.RECENT, scheme.queues_rechecks),
        prepare=True,
    )
    if not is_settled and len(given_for(node.network_id)) > 1:
        # The others may go on: what it says would keep them from agreeing.
        rpc.leave_out(node.network_id, node.provider, text)
    subject = (node.network_id, node.provider, text)
    if monotonic() - _logged.get(subject, -_LOGGED_EVERY) < _LOGGED_EVERY:
        return
    _logged[subject] = monotonic()
    tell = log.warning if is_settled else log.error
    tell(
        "a provider contradicts itself",
        network=node.network_id,
        provider=node.provider,
        block=height,
        said=text,
    )


def recheck(network_id: int, kind: str, first: int, last: int) -> None:
    """Queue these blocks for an audit by receipts, together with those already queued."""
    if first <= last:
        fetch(_RECHECK, (network_id, kind, first, last), prepare=True)


def forget() -> None:
    """Clear what this process has logged, for tests."""
    _logged.clear()
