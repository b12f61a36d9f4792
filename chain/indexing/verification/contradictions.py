"""Contradictions of providers, for operators and for the audit that follows each of them."""

from __future__ import annotations

from time import monotonic
from typing import Final

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Greatest, Least, Now

from backend.logs.setup import get_logger
from chain import rpc
from chain.core.node import Node
from chain.indexing.verification.schemes import Scheme
from chain.models import Cursor, Recheck
from chain.rpc.endpoints import given_for
from objects.database.orm import orm_queries

_LONGEST: Final = 300
_LOGGED_EVERY: Final = 10.0  # seconds
_logged: dict[tuple[int, str, str], float] = {}

log = get_logger("chain")


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
    _note(node.network_id, message, count, queues_recheck=scheme.queues_rechecks)
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
        with orm_queries():
            Recheck.objects.update_or_create(
                network_id=network_id,
                kind=kind,
                defaults={
                    "next_block": Least("next_block", first),
                    "last_block": Greatest("last_block", last),
                    "made_at": Now(),
                },
                create_defaults={"next_block": first, "last_block": last},
            )


def _note(network_id: int, message: str, count: int, *, queues_recheck: bool) -> None:
    """Count a contradiction in the network's cursor, and queue its recheck with it."""
    with orm_queries(), transaction.atomic():
        cursors = Cursor.objects.filter(network_id=network_id)
        cursors.update(
            contradictions=F("contradictions") + count,
            contradicted_at=Now(),
            contradiction=message,
        )
        if queues_recheck:
            # The update has locked the row.
            audited = Coalesce("audited_before", "audited", "began_at")
            for before, number in cursors.values_list(audited, "number"):
                if before is not None and number is not None:
                    recheck(network_id, Recheck.RECENT, before + 1, number)


def forget() -> None:
    """Clear what this process has logged, for tests."""
    _logged.clear()
