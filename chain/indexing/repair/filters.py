"""Logs compared with the filters of all headers that a node has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from chain.core.failures import NodeFailure, TryAgain
from chain.core.node import Header, Log, LogFilter, Node, header_in
from chain.indexing import verification
from chain.indexing.verification import Scheme


def doubtful_blocks(
    node: Node, heights: range, logs: Sequence[Log], log_filter: LogFilter, scheme: Scheme
) -> list[int]:
    """Return the heights of blocks whose filters contradict these logs of theirs. Blocks whose
    headers the node doesn't have are left out. Raises as ``verification.check_hashes`` does."""
    logs_of: defaultdict[str, list[Log]] = defaultdict(list)
    for log in logs:
        logs_of[log.block_hash].append(log)
    doubtful = []
    for start in range(heights.start, heights.stop, verification.WIDTH):
        headers = _headers(node, heights[start - heights.start :][: verification.WIDTH])
        verification.check_hashes(node, headers, scheme)
        doubtful += [
            header.height
            for header in headers
            if verification.is_doubtful(
                node.network_id, header, logs_of.get(header.hash, []), log_filter
            )
        ]
    return doubtful


def _headers(node: Node, heights: range) -> list[Header]:
    headers = []
    answers = node.batch([("eth_getBlockByNumber", (hex(height), False)) for height in heights])
    for height, answer in zip(heights, answers, strict=True):
        header = None if isinstance(answer, NodeFailure) else header_in(answer)
        if header is None:
            continue
        if header.height != height:
            raise TryAgain("another block than the one that was requested")
        headers.append(header)
    return headers
