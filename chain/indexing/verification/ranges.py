"""Ranges of final blocks, which are read without headers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from chain.core.blocks import consistency
from chain.core.blocks.times import times_of
from chain.core.failures import Contradiction, EmptyPromise, MissingReceipts, Refused, TryAgain
from chain.core.node import Header, Log, LogFilter, Node
from chain.indexing.verification.blocks import has_receipts, verified
from chain.indexing.verification.contradictions import note_contradiction, recheck
from chain.indexing.verification.schemes import Scheme
from chain.models.indexing import Recheck

WIDTH: Final = 64
"""Blocks whose headers are read together where each block is checked."""
_FROM_LOGGED: Final = 4
_FROM_ALL: Final = 4
_MOST_LOGS: Final = 200
"""Most logs in a sample; the first block is always taken."""

_wrong: dict[int, range] = {}
"""The last range of each network in which a provider contradicted itself, or was corrected."""


def end_of_window(height: int) -> int:
    """The last block of the window with this one: windows end with multiples of ``WIDTH``."""
    return height + -height % WIDTH


def verified_range(
    node: Node,
    first: int,
    last: int,
    logs: Sequence[Log],
    log_filter: LogFilter,
    scheme: Scheme,
    *,
    since: int | None = None,
    above: tuple[int, str] | None = None,
) -> tuple[list[Log], int]:
    """The wanted logs of final blocks from ``first`` on, and the last block that they are of:
    ``last``, or one before it where every block is checked. ``logs`` is what the node returned.

    Of a sample, up to eight headers of the range are compared with the logs, and the receipts of
    at least one block with logs. If one contradicts the logs, every block of the range is checked,
    and the blocks from ``since`` to ``first - 1`` are queued for the next audit. If receipts are
    missing, in a range without logs those of one block with transactions, every block is checked
    as well: the node may have neither of blocks that it has pruned. Where every block
    is checked, the last one has to link to ``above``, a block of the chain at that height or above,
    if one is known. Raises as ``verified`` does, and ``EmptyPromise`` if a block isn't there.
    """
    if not log_filter.addresses:
        return list(logs), last
    if not (scheme.share >= 1 or _is_wrong(node.network_id, first)):
        is_contradicted = True
        try:
            if _is_sound(node, first, last, logs, log_filter, scheme):
                return list(logs), last
        except Contradiction:
            pass  # has been noted
        except MissingReceipts:
            is_contradicted = False
        _wrong[node.network_id] = range(first, last + 1)
        if since is not None and is_contradicted:
            recheck(node.network_id, Recheck.HISTORY, since, first - 1)
    last = min(last, first + WIDTH - 1)
    chained = headers(node, range(first, max(last, above[0] if above else 0) + 1))
    check_links(node, chained, above, scheme)
    chained = [header for header in chained if header.height <= last]
    within = [header for header in logs if header.height <= last]
    return verified(node, chained, within, log_filter, scheme.thorough, by_hash=False), last


def check_links(
    node: Node, headers: Sequence[Header], top: tuple[int, str] | None, scheme: Scheme
) -> None:
    """Raise ``Contradiction`` unless each of these blocks is the parent of the next, and the last
    one is ``top``, by height and hash, if that is known."""
    odd = consistency.odd_link(headers)
    text = "a final block isn't the parent of the next one"
    if top is not None and (headers[-1].height, headers[-1].hash) != top:
        odd, text = headers[-1].height, "it isn't the block that is known to be in the chain"
    if odd is None:
        return
    note_contradiction(node, odd, text, scheme)
    raise Contradiction(f"block {odd}: {text}")


def forget() -> None:
    """Begin as a new process does."""
    _wrong.clear()


def _is_wrong(network_id: int, height: int) -> bool:
    return height in _wrong.get(network_id, ())


def _is_sound(
    node: Node, first: int, last: int, logs: Sequence[Log], log_filter: LogFilter, scheme: Scheme
) -> bool:
    """Whether some blocks, drawn by chance, have just these logs. Raises ``MissingReceipts``."""
    counts = Counter(log.block_number for log in logs)
    heights = {number: int(number, 16) for number in counts}
    drawn = _drawn(first, last, {heights[number]: count for number, count in counts.items()})
    sampled = headers(node, sorted(drawn))
    claimed = [log for log in logs if heights[log.block_number] in drawn]
    hashes = {header.height: header.hash for header in sampled}
    times_of(claimed, sampled)  # raises ``TryAgain`` if one names another time
    for log in claimed:
        if log.block_hash != hashes[heights[log.block_number]]:
            text = "its logs are of a block with another hash"
            note_contradiction(node, log.height, text, scheme)
            return False
    # One of them by its receipts in any case: no filter names data of logs.
    proving = {random.choice(claimed).block_hash} if claimed else set()
    if not logs:
        _require_receipts(node, sampled)
    checked = verified(node, sampled, claimed, log_filter, scheme, by_hash=False, proving=proving)
    return consistency.are_same(checked, claimed)


def _require_receipts(node: Node, headers: Sequence[Header]) -> None:
    """Raise ``MissingReceipts`` unless the node has those of the first of these blocks that has
    transactions."""
    header = next((header for header in headers if header.transactions != []), None)
    if header is None:
        return
    try:
        is_there = has_receipts(node, header)
    except Refused:
        is_there = False
    if not is_there:
        raise MissingReceipts(f"the provider doesn't have the receipts of block {header.height}")


def _drawn(first: int, last: int, counts: Mapping[int, int]) -> set[int]:
    """Heights of blocks to examine: some of those with logs, and some of all. ``counts`` maps
    heights to numbers of logs. After the first block, no more than have ``_MOST_LOGS`` together."""
    drawn: set[int] = set()
    logs = 0
    for height in (
        *random.sample([*counts], min(_FROM_LOGGED, len(counts))),
        *(random.randint(first, last) for _ in range(_FROM_ALL)),
    ):
        more = counts.get(height, 0)
        if height not in drawn and (not drawn or logs + more <= _MOST_LOGS):
            drawn.add(height)
            logs += more
    return drawn


def headers(node: Node, heights: Sequence[int]) -> list[Header]:
    """The blocks at these heights. Raises ``EmptyPromise`` if one isn't there, ``TryAgain`` if the
    node returns another one."""
    headers_of_range = []
    for height, header in zip(heights, node.headers(heights), strict=True):
        if header is None:
            raise EmptyPromise("a block that the provider has named isn't there")
        if consistency.height_of(header) != height:
            raise TryAgain("another block than the one that was requested")
        headers_of_range.append(header)
    return headers_of_range
