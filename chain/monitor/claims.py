"""A hash has one record, also where a client has named the wrong network first.

A transaction belongs to one network (EIP-155), so a record of which its network's nodes have never
known anything says nothing. It is moved to the network where the transaction is. What nodes have
known stays where it is: what was signed before EIP-155 may be on several networks, and is followed
on the one that was named first.
"""

from __future__ import annotations

from typing import Final

from django.db.models import QuerySet

from chain import rpc
from chain.core.failures import NodeFailure
from chain.core.node import Node
from chain.core.transactions.states import PENDING, STALLED
from chain.models import Transaction
from chain.models.expressions import now_in_milliseconds, touched
from chain.monitor import node_requests
from objects.database import maintenance
from objects.database.orm import orm_queries

_PATIENCE: Final = 5.0


def claim(network_id: int, tx_hash: str) -> None:
    """Have the record of a hash be of this network, if another one's nodes have never known it and
    one of this network knows it now. Makes no request unless that is in question."""
    with orm_queries():
        if not _unknown_elsewhere(network_id, tx_hash).exists():
            return

    def known(node: Node) -> bool:
        return node_requests.transactions(node, [tx_hash]).get(tx_hash) is not None

    try:
        is_here = rpc.attempt(network_id, known, seconds=_PATIENCE)
    except NodeFailure:
        return
    if is_here:
        with maintenance.recording(), maintenance.writing():
            move(network_id, tx_hash)


def move(network_id: int, tx_hash: str) -> None:
    """As ``claim``, for a caller that knows the transaction's network. It is monitored as if
    it began now. Part of the caller's transaction."""
    now = now_in_milliseconds()
    with orm_queries():
        _unknown_elsewhere(network_id, tx_hash).update(
            network_id=str(network_id),
            status=PENDING,
            attempts=0,
            last_checked=None,
            pending_since=now,
            next_check_at=now,
            failed_checks=0,
            missing_since=None,
            missing_checks=0,
            updated_at=touched(),
        )


def _unknown_elsewhere(network_id: int, tx_hash: str) -> QuerySet[Transaction]:
    """The record of a hash, if it is of another network whose nodes have never known it."""
    return Transaction.objects.filter(
        hash=tx_hash,
        network_id__isnull=False,
        status__in=(PENDING, STALLED),
        from_address=None,
        block_number=None,
        late_receipt__isnull=True,
    ).exclude(network_id=str(network_id))
