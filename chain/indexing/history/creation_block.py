"""Finding the block in which a contract was made."""

from __future__ import annotations

from typing import Final

from chain import rpc
from chain.core.failures import NodeFailure, TryAgain
from chain.core.node import Node
from chain.indexing.history.progress import Group
from chain.models import Backfill
from objects.database.orm import orm_queries

_AT_ONCE: Final = 7  # heights asked for in one request


def seek(group: Group) -> None:
    """Let the row begin where the contract was made; from its first block on if no node knows.

    Blocks before it have no logs of it, so they count as read.
    """
    made = rpc.attempt(
        group.network_id, lambda node: made_in(node, group.addresses[0], group.first, group.last)
    )
    next_block = group.first if made is None else made
    with orm_queries():
        Backfill.objects.filter(
            pk=group.ids[0], next_block=group.first, seeking=True, done_at=None
        ).update(next_block=next_block, seeking=False, trouble=None, failures=0)


def made_in(node: Node, address: str, first: int, last: int) -> int | None:
    """The first of these blocks after which there is code at the address. None if there is none
    after the last, since it may have been there before, or if the node doesn't know the past."""
    without_code, with_code = first - 1, last + 1
    while with_code - without_code > 1:
        heights = _between(without_code, with_code)
        if with_code > last and heights[-1] != last:
            heights.append(last)
        for height, code in zip(heights, _codes(node, address, heights), strict=True):
            if code is None:
                return None
            if code:
                with_code = height
                break
            without_code = height
        if without_code == last:
            return None
    return with_code


def _between(low: int, high: int) -> list[int]:
    """Some heights between these two, evenly apart."""
    count = min(_AT_ONCE, high - low - 1)
    return [low + (high - low) * step // (count + 1) for step in range(1, count + 1)]


def _codes(node: Node, address: str, heights: list[int]) -> list[bool | None]:
    """Whether there was code after these blocks; None where the node can't say."""
    calls = [("eth_getCode", (address, hex(height))) for height in heights]
    have_code: list[bool | None] = []
    for code in node.batch(calls):
        if isinstance(code, TryAgain):
            raise code
        if isinstance(code, NodeFailure) or not isinstance(code, str):
            have_code.append(None)
        else:
            have_code.append(len(code) > 2)
    return have_code
