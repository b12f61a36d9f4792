"""Where two chains part.

Blocks name their parents by hash, so two chains that share a block share all below it: the last
shared block is found without looking at each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from chain.core.failures import Moved

WINDOW: Final = 64
"""Heights that are asked about at once."""

Hashes = Mapping[int, str]


def fork_point(
    ours: Callable[[int, int], Hashes],
    theirs: Callable[[Sequence[int]], Hashes],
    *,
    floor: int,
    top: int,
) -> int | None:
    """The highest block from ``floor`` to ``top`` that both chains have; None if they have none.

    ``ours`` gives the hashes that are known of a range of heights, ``theirs`` those of single
    heights. A fork among the ``WINDOW`` blocks up to ``top`` costs one question, a deeper one as
    many more as it takes to narrow the rest down to one block by dividing it by ``WINDOW``.
    Raises ``Moved`` when their answers can't be one chain's: it has changed in between.
    """
    first = max(floor, top - WINDOW + 1)
    our_hashes = ours(first, top)
    heights = sorted(our_hashes)
    shared = _compare(our_hashes, theirs(heights))[0] if heights else None
    if shared is not None or first == floor:
        return shared
    our_hashes = ours(floor, first - 1)
    return _narrowed(our_hashes, theirs, sorted(our_hashes))


def _narrowed(
    our_hashes: Hashes, theirs: Callable[[Sequence[int]], Hashes], heights: list[int]
) -> int | None:
    shared = None
    while heights:
        probes = _spread(heights)
        common, differing = _compare({at: our_hashes[at] for at in probes}, theirs(probes))
        if common is None and shared is None:
            return None  # not even the lowest one
        shared = shared if common is None else common
        heights = [
            at
            for at in heights
            if (shared is None or at > shared) and (differing is None or at < differing)
        ]
    return shared


def _spread(heights: list[int]) -> list[int]:
    """At most ``WINDOW`` of the heights: the lowest, the highest, and others evenly between."""
    if len(heights) <= WINDOW:
        return heights
    last = len(heights) - 1
    return [heights[last * step // (WINDOW - 1)] for step in range(WINDOW)]


def _compare(ours: Hashes, theirs: Hashes) -> tuple[int | None, int | None]:
    """The highest height with one hash in both, the lowest with two."""
    shared = max((at for at in ours if theirs.get(at) == ours[at]), default=None)
    differing = min((at for at in ours if theirs.get(at) != ours[at]), default=None)
    if shared is not None and differing is not None and differing < shared:
        raise Moved("hashes of two chains in one answer")
    return shared, differing
