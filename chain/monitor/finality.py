"""How certain it is that a transaction stays where it is.

``included`` is in a block, ``safe`` and ``finalized`` in one that the network takes for that: by
its tags, else by its depth (``chain.core.blocks.final_heights``). Before that, the block
is compared with the one of its height in the chain; a transaction in another block is looked up
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from django.db.models import Q

from backend.kernel.errors import UnderMaintenance
from backend.logs.setup import get_logger
from chain import rpc
from chain.core.blocks.final_heights import Heights
from chain.core.failures import NodeFailure
from chain.core.node import Node
from chain.core.transactions.states import INCLUDED, SAFE
from chain.models import Block, Blockchain, Transaction
from chain.monitor.certainty import certain_heights
from chain.monitor.storage.blocks import mark
from objects.database import maintenance
from objects.database.transactions import all_or_nothing

_MOST: Final = 200
"""Heights that are compared at once."""

log = get_logger("transactions")


def finalize(network_id: int) -> int:
    """Mark what has become safe or final on a network. Return how many. Makes no request if none
    can."""
    network = Blockchain.objects.filter(network_id=network_id, active=True).first()
    if network is None or not _is_waited(network_id):
        return 0
    try:
        reached = rpc.attempt(
            network_id, lambda node: certain_heights(node, network_id, network.finality_depth)
        )
        marked = 0
        last = -1
        while True:
            waiting = _waiting(network_id, reached, last)
            if not waiting:
                return marked
            last = max(waiting)
            hashes = _stored(network_id, waiting)
            unknown = [height for height in waiting if height not in hashes]
            if unknown:
                hashes |= rpc.attempt(network_id, partial(_asked, unknown))
            marked += _mark(network_id, reached, hashes)
    except NodeFailure as failure:
        log.warning("finality not asked for", network=network_id, reason=str(failure))
    except UnderMaintenance:
        pass
    return 0


def _is_waited(network_id: int) -> bool:
    waiting = Transaction.objects.filter(network_id=str(network_id), finality__in=(INCLUDED, SAFE))
    return waiting.exists()


def _waiting(network_id: int, reached: Heights, above: int) -> list[int]:
    """Heights that have been reached by now, above this one, lowest first."""
    reached_now = Q(finality__in=(INCLUDED, SAFE), block_number__lte=reached.finalized) | Q(
        finality=INCLUDED, block_number__lte=reached.safe
    )
    rows = Transaction.objects.filter(
        reached_now, network_id=str(network_id), block_number__gt=above
    ).order_by("block_number")
    return [*rows.values_list("block_number", flat=True).distinct()[:_MOST]]


def _stored(network_id: int, heights: list[int]) -> dict[int, str]:
    rows = Block.objects.filter(network_id=network_id, canonical=True, number__in=heights)
    return dict(rows.values_list("number", "hash"))


def _asked(heights: list[int], node: Node) -> dict[int, str]:
    return {
        header.height: header.hash.lower() for header in node.headers(heights) if header is not None
    }


def _mark(network_id: int, reached: Heights, hashes: Mapping[int, str]) -> int:
    def marked() -> int:
        maintenance.check()
        marks = mark(network_id, hashes, reached.finalized)
        if marks.lost:
            log.warning("transactions in blocks that are gone", network=network_id, n=marks.lost)
        return marks.marked

    with maintenance.recording():
        return all_or_nothing(marked)
