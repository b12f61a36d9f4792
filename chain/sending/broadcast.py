"""Handing signed transactions to a network, and writing down what it said."""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Coalesce, Now

from backend.logs.setup import get_logger
from chain import rpc
from chain.core.failures import NodeFailure
from chain.core.node import Node
from chain.core.transactions.broadcasts import Broadcast
from chain.models import Sending
from chain.rpc import contracts
from chain.sending.nonces import LOST, REFUSED, SENT, SIGNED

log = get_logger("sending")


def hand_over(row: Sending, *, seconds: float = 8.0) -> tuple[Broadcast, str]:
    """Give a transaction to a node: what became of it, and why.

    ``UNCLEAR`` as soon as a node may have taken it without saying so, even if another one refuses.
    """
    silent = False

    def step(node: Node) -> tuple[Broadcast, str]:
        nonlocal silent
        try:
            return contracts.broadcast(node, row.raw)
        except NodeFailure:
            silent = True
            raise

    try:
        meaning, text = rpc.attempt(row.network_id, step, seconds=seconds)
    except NodeFailure as failure:
        return Broadcast.UNCLEAR, str(failure)
    if silent and meaning is not Broadcast.TAKEN:
        return Broadcast.UNCLEAR, text
    return meaning, text


def taken(row: Sending) -> None:
    """A node has it."""
    Sending.objects.filter(id=row.id, state__in=(SIGNED, SENT)).update(
        state=SENT, sent_at=Coalesce("sent_at", Now()), trouble=None
    )


def waits(row: Sending, why: str) -> None:
    """It isn't there yet, and will be tried again."""
    Sending.objects.filter(id=row.id, state__in=(SIGNED, SENT)).update(trouble=why)
    log.warning("transaction waits", network=row.network_id, hash=row.hash, reason=why)


def ended(row: Sending, state: str, why: str, *, if_younger: timedelta | None = None) -> bool:
    """It will never be mined: *refused*, which frees its nonce, or *lost*. Whether it is so:
    neither if a node has taken it, nor, on that condition, if it is older."""
    assert state in (REFUSED, LOST)
    untaken = Sending.objects.filter(id=row.id, state=SIGNED)
    if if_younger is not None:
        untaken = untaken.filter(created_at__gt=Now() - if_younger)
    if not untaken.update(state=state, trouble=why):
        return False
    log.error("transaction ended", network=row.network_id, hash=row.hash, state=state, reason=why)
    return True
