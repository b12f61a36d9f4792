"""Which blocks of the past belong to the chain that is followed, proved by their headers.

A provider can make up a block of the past together with its receipts and its hash. What it can't
make up is the parent of a block that is known. So, where every block is checked, all headers from a
stored block down to the first block of a backfill are read once, each the parent of the one before,
and the last one and every 64th are stored (``ProvedBlock``). Each window of blocks that is read
later has to link to the next of these. Only on networks whose headers prove their own hashes.
"""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import Final

from django.db import transaction
from django.db.models import Exists, F, OuterRef
from msgspec.structs import replace

from backend.logs.setup import get_logger
from chain import rpc
from chain.core.node import Header, Node
from chain.indexing import verification
from chain.indexing.history.progress import Lost
from chain.indexing.history.unavailable import provider_trouble
from chain.indexing.storage.block_rows import Block
from chain.indexing.verification import Scheme
from chain.models import Block as StoredBlock
from chain.models import Cursor, ProvedBlock
from objects.database import maintenance

log = get_logger("chain")

_WIDTH: Final = verification.WIDTH
_AT_ONCE: Final = 4 * _WIDTH  # headers


def prove_blocks(
    network_id: int, first: int, last: int, final: int, scheme: Scheme, end: float
) -> bool:
    """Prove the blocks from ``last`` down to ``first``, until ``end`` (of ``time.monotonic``);
    whether all of them are proved now. The next call goes on. ``final`` is the last final block.

    Raises ``NodeFailure``, and ``Lost`` if no block above is known, or not any more: an operator
    has reverted the network, or the block was above the final ones and is reorganised.
    """
    lowest = verification.end_of_window(first)  # blocks below are checked with that window
    anchor = block_above(network_id, last)
    if anchor is None:
        raise Lost("no block above is known")
    top = anchor
    while True:
        top = _lowest_linked(network_id, top)
        if _next_below(top[0]) < lowest:
            return True
        if monotonic() >= end:
            log.info("proof of headers pauses", network=network_id, down_to=top[0])
            return False
        down_to = max(lowest, _next_below(top[0]) - _AT_ONCE + _WIDTH)
        read = partial(_headers_below, top=top, down_to=down_to, scheme=scheme)
        headers = rpc.attempt(network_id, read)
        proved = [
            ProvedBlock(network_id=network_id, number=header.height, hash=header.hash)
            for header in headers
            if header.height <= final and (header.height % _WIDTH == 0 or header.height == last)
        ]
        with transaction.atomic():
            maintenance.check()
            Cursor.objects.select_for_update().filter(pk=network_id).first()
            if block_above(network_id, anchor[0]) != anchor:
                raise Lost("the block above is not in the chain any more")
            ProvedBlock.objects.bulk_create(proved, ignore_conflicts=True)
        top = (headers[0].height, headers[0].hash)


def block_above(network_id: int, height: int) -> Block | None:
    """The lowest block from this height on that is known to belong to the chain."""
    tables = (Cursor.objects, StoredBlock.objects.filter(canonical=True), ProvedBlock.objects)
    blocks: list[Block] = []
    for rows in tables:
        above = rows.filter(network_id=network_id, number__gte=height).order_by("number")
        blocks += [
            (number, hash_)
            for number, hash_ in above.values_list("number", "hash")[:1]
            if number is not None and hash_ is not None
        ]
    return min(blocks, default=None)


def _lowest_linked(network_id: int, top: Block) -> Block:
    """The lowest proved block that is reached from ``top`` in steps of a window, or ``top``."""
    height = top[0]
    rows = ProvedBlock.objects.filter(network_id=network_id)
    rows = rows.annotate(remainder=F("number") % _WIDTH)
    next_below = _next_below(height)
    if not rows.filter(number=next_below).exists():
        return top
    below = ProvedBlock.objects.filter(network_id=network_id, number=OuterRef("number") - _WIDTH)
    ends = rows.filter(~Exists(below), remainder=0, number__lte=next_below).order_by("-number")
    lowest: Block = ends.values_list("number", "hash")[0]
    return lowest


def _next_below(height: int) -> int:
    return (height - 1) // _WIDTH * _WIDTH


def _headers_below(node: Node, *, top: Block, down_to: int, scheme: Scheme) -> list[Header]:
    """The headers from ``down_to`` to ``top``, whose hash the last of them has to have."""
    headers: list[Header] = []
    for first in range(down_to, top[0] + 1, _WIDTH):
        with provider_trouble():
            part = verification.headers(node, range(first, min(first + _WIDTH, top[0] + 1)))
        verification.check_hashes(node, part, scheme)
        # The lists of transactions are in no hash: a provider may make them very long.
        headers += [replace(header, transactions=[]) for header in part]
    verification.check_links(node, headers, top, scheme)
    return headers
