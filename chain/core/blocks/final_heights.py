"""How deep a block has to be until it is final, for nodes that don't say so themselves.

Depths are those that indexers have come to use; a network that isn't known gets 64.
"""

from __future__ import annotations

from typing import Final, NamedTuple

ETHEREUM, OP_STACK, POLYGON, ARBITRUM, OTHER = 65, 30, 200, 240, 64

_DEPTHS: Final = {
    **dict.fromkeys((1, 11155111, 17000, 560048), ETHEREUM),
    **dict.fromkeys(
        (10, 11155420, 8453, 84532, 7777777, 999999999, 34443, 130, 1301, 480, 4801, 81457, 252),
        OP_STACK,
    ),
    **dict.fromkeys((137, 80002), POLYGON),
    **dict.fromkeys((42161, 42170, 421614), ARBITRUM),
}


class Heights(NamedTuple):
    """Up to which block a chain is as good as certain, and up to which it can't change."""

    safe: int
    finalized: int


def depth_of(network_id: int) -> int:
    """Blocks on top of one that make it final on this network."""
    return _DEPTHS.get(network_id, OTHER)


def heights(
    network_id: int, head: int, safe: int | None, finalized: int | None, depth: int | None = None
) -> Heights:
    """What is safe and final, given what a node says of its tags (None if it has none).

    ``depth`` is a deployment's own and goes before the tags; without either the network's usual
    depth counts. Neither is ever above the head, nor ``finalized`` above ``safe``.
    """
    if depth is not None or finalized is None:
        deep = depth_of(network_id) if depth is None else depth
        finalized = max(0, head - deep)
        safe = max(0, head - deep // 2)
    highest = min(head, finalized)
    return Heights(max(highest, min(head, finalized if safe is None else safe)), highest)
