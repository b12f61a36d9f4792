"""Up to which block a network is certain, by what its reader has seen, else by what a node says."""

from __future__ import annotations

from typing import Final

import msgspec
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Least

from chain import rpc
from chain.core.blocks.final_heights import Heights, heights
from chain.core.failures import NodeFailure
from chain.core.node import Node, header_in
from chain.models import Blockchain, Cursor
from chain.models.expressions import in_seconds
from objects.database.orm import orm_queries

_FRESH: Final = 60  # seconds
_HIGHEST: Final = 2**52


def certain_heights(node: Node, network_id: int, depth: int | None) -> Heights:
    """Return the heights of the safe and the final block. ``depth`` is the network's own
    (``chain.core.blocks.final_heights``). One of several providers alone decides nothing."""
    confirmations = Blockchain.objects.filter(network_id=OuterRef("network_id"))
    with orm_queries():
        row = (
            Cursor.objects.filter(
                network_id=network_id,
                head__isnull=False,
                finalized__isnull=False,
                looked_at__gt=in_seconds(-_FRESH),
            )
            .annotate(confirmations=Subquery(confirmations.values("confirmations")))
            .filter(confirmations__isnull=False)
            # A head alone is what one node says; blocks that were read are the chain.
            .values_list(Least("head", F("number") + F("confirmations")), "safe", "finalized")
            .first()
        )
    if row is not None:
        head, safe, final = row
    else:
        tags = ("latest", "safe", "finalized")
        calls = [("eth_getBlockByNumber", (tag, False)) for tag in tags]
        latest, safe, final = map(_number, node.batch(calls))
        head = latest or 0
        if (limit := rpc.witnessed(network_id)) is not None:
            head = min(head, max(0, limit))
    return heights(network_id, head, safe, final, depth)


def _number(answer: msgspec.Raw | NodeFailure) -> int | None:
    """The height; None if the request was refused or there is no such block yet."""
    if isinstance(answer, NodeFailure):
        return None
    block = header_in(answer)
    return None if block is None or block.height >= _HIGHEST else block.height
