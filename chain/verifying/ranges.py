"""Ranges of final blocks, which are read without headers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from chain.core import links
from chain.core.block_times import times_of
from chain.core.failures import Contradiction, EmptyPromise
from chain.core.node import Header, Log, LogFilter, Node
from chain.reading_models import Recheck
from chain.verifying.blocks import verified
from chain.verifying.noting import note_contradiction, recheck
from chain.verifying.schemes import Scheme

WIDTH: Final = 64
"""Blocks whose headers are read together where each block is checked."""
_WITH_LOGS: Final = 4
_WITHOUT: Final = 4

_wrong: dict[int, range] = {}
"""The last range of each network in which a provider contradicted itself."""


def verified_range(
    node: Node,
    first: int,
    last: int,
    logs: Sequence[Log],
    wanted: LogFilter,
    scheme: Scheme,
    *,
    since: int | None = None,
) -> tuple[list[Log], int]:
    """The wanted logs of the blocks from ``first`` on, given those that the node answered up to
    ``last``; and the last block that they are of now, which may be one before it where each block
    is checked.

    Of a sample some blocks' headers are read, and the receipts of at least one of those with logs.
    If anything is wrong with one of them, the whole range counts as wrong and each block is
    checked, as is what was read from ``since`` on before, in a later audit. Raises as ``verified``
    does, and ``EmptyPromise`` if a block isn't there.
    """
    if not (scheme.share >= 1 or _is_wrong(node.network_id, first)):
        try:
            if _is_sound(node, first, last, logs, wanted, scheme):
                return list(logs), last
        except Contradiction:
            pass  # has been noted
        _wrong[node.network_id] = range(first, last + 1)
        if since is not None:
            recheck(node.network_id, Recheck.HISTORY, since, first - 1)
    last = min(last, first + WIDTH - 1)
    chained = links.following(headers(node, range(first, last + 1)))
    within = [one for one in logs if one.height <= last]
    return verified(node, chained, within, wanted, scheme.thorough, by_hash=False), last


def forget() -> None:
    """Begin as a new process does."""
    _wrong.clear()


def _is_wrong(network_id: int, height: int) -> bool:
    return height in _wrong.get(network_id, ())


def _is_sound(
    node: Node, first: int, last: int, logs: Sequence[Log], wanted: LogFilter, scheme: Scheme
) -> bool:
    """Whether some blocks, drawn by chance, have just these logs."""
    having = sorted({one.height for one in logs})
    drawn = {
        *random.sample(having, min(_WITH_LOGS, len(having))),
        *(random.randint(first, last) for _ in range(_WITHOUT)),
    }
    sampled = headers(node, sorted(drawn))
    claimed = [one for one in logs if one.height in drawn]
    hashes = {one.height: one.hash for one in sampled}
    times_of(claimed, sampled)  # or ``TryAgain``
    for one in claimed:
        if one.block_hash != hashes[one.height]:
            note_contradiction(
                node, [one.height], "its logs are of a block with another hash", scheme
            )
            return False
    found = verified(node, sampled, claimed, wanted, scheme, by_hash=False)
    found = _with_one_by_receipts(node, sampled, found, wanted, scheme)
    return {*map(links.facts, found)} == {*map(links.facts, claimed)}


def _with_one_by_receipts(
    node: Node, sampled: Sequence[Header], logs: list[Log], wanted: LogFilter, scheme: Scheme
) -> list[Log]:
    """The logs, with those of one block taken from its receipts: no filter names data of logs."""
    if not logs:
        return logs
    chosen = random.choice(logs).block_hash
    its = [log for log in logs if log.block_hash == chosen]
    header = [header for header in sampled if header.hash == chosen]
    its = verified(node, header, its, wanted, scheme.thorough, by_hash=True)
    return [log for log in logs if log.block_hash != chosen] + its


def headers(node: Node, heights: Sequence[int]) -> list[Header]:
    """The blocks at these heights. ``EmptyPromise`` if one isn't there."""
    found = []
    for height, header in zip(heights, node.headers(heights), strict=True):
        if header is None:
            raise EmptyPromise("a block that the provider has named isn't there")
        if links.height_of(header) != height:
            raise Contradiction("another block than the one that was requested")
        found.append(header)
    return found
