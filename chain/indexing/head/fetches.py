"""What the reader asks of a node: few requests, and nothing that doesn't fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import msgspec

from chain import monitor, rpc
from chain.core.blocks import consistency
from chain.core.failures import (
    REFUSALS_OF_LOGS,
    EmptyPromise,
    Moved,
    NodeFailure,
    RangeTooLarge,
    Refused,
    TryAgain,
)
from chain.core.node import Header, Log, LogFilter, Node, Receipt, header_in
from chain.indexing import verification
from chain.indexing.block_times import read_block_times
from chain.indexing.log_ranges import Limits, read_logs, weight_of
from chain.indexing.storage.cursors import Position

STEP: Final = 64
"""Blocks that are read at once near the head, each with its header."""

_limits: dict[int, Limits] = {}


@dataclass(frozen=True, slots=True)
class Look:
    """What a node says first: its newest block, its block at our height, and, if it was asked and
    knows them, the heights of its tags."""

    latest: Header
    ours: Header | None
    finalized: int | None = None
    safe: int | None = None
    tagged: tuple[Header, ...] = ()
    """The blocks of the tags."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Blocks that were read: their headers (of final ones the last alone; none if other providers
    don't have them), the logs in them, what the monitor wants to know of them, and the times of
    the logs' blocks by their hashes."""

    headers: list[Header]
    logs: list[Log]
    seen: monitor.Seen | None = None
    times: Mapping[str, str] = field(default_factory=dict)

    @property
    def last(self) -> Header:
        return self.headers[-1]


def look(node: Node, number: int | None, *, with_tags: bool) -> Look:
    """One request. ``TryAgain`` unless it's about blocks."""
    tag_names: list[str] = ["latest"]
    tag_names += [] if number is None else [hex(number)]
    tag_names += ["finalized", "safe"] if with_tags else []
    answers = node.batch([("eth_getBlockByNumber", (tag, False)) for tag in tag_names])
    latest = _header(answers[0])
    if latest is None:
        raise TryAgain("no newest block")
    consistency.height_of(latest)
    ours = None if number is None else _header(answers[1])
    if ours is not None and consistency.height_of(ours) != number:
        raise TryAgain("another block than was asked for")
    if not with_tags:
        return Look(latest, ours)
    # Many nodes have no tags, and say so in many ways.
    tags = [None if isinstance(tag, NodeFailure) else header_in(tag) for tag in answers[-2:]]
    finalized, safe = (None if tag is None else consistency.height_of(tag) for tag in tags)
    return Look(latest, ours, finalized, safe, tuple(tag for tag in tags if tag is not None))


def blocks(node: Node, heights: Sequence[int]) -> dict[int, Header]:
    """The node's blocks at these heights; ``Moved`` if it doesn't have one of them."""
    headers = {}
    for at, header in zip(heights, node.headers(heights), strict=True):
        if header is None or consistency.height_of(header) != at:
            raise Moved("a block is not there any more")
        headers[at] = header
    return headers


def next_blocks(
    node: Node, at: Position, latest: Header, last: int, log_filter: LogFilter
) -> Stretch:
    """Blocks from the cursor to ``last`` at most: those that link to it, and their logs. As far as
    other providers have the same, which may be no block at all."""
    first = at.height + 1
    if first == last == latest.height:
        return _newest(node, at, latest, log_filter)
    last = min(last, at.height + STEP)
    if log_filter.addresses:
        headers, logs = _in_range(node, range(first, last + 1), log_filter, first)
    else:
        headers, logs = node.headers(range(first, last + 1)), []
    chained = consistency.chained(at.height, at.hash, headers)
    scheme = verification.Scheme.of(at.verify)
    logs = verification.verified(node, chained, logs, log_filter, scheme, by_hash=False)
    height = rpc.agreed(node, chained, log_filter, logs, evidence=verification.evidence)
    if height < last:
        chained = [header for header in chained if header.height <= height]
        logs = [header for header in logs if header.height <= height]
    times = read_block_times(node, logs, chained).by_hash
    return Stretch(chained, logs, monitor.receipts_for(at.network_id, chained, node), times)


def final_blocks(node: Node, at: Position, last: int, log_filter: LogFilter) -> Stretch:
    """Blocks after the cursor up to ``last`` at most, all of them final. Of their headers only the
    last one is returned; ``verified_range`` requests more to check the logs. Fewer blocks are
    returned if the provider answers for fewer."""
    first = at.height + 1
    if log_filter.addresses:
        headers, logs = _in_range(node, (last,), log_filter, first)
    else:
        headers, logs = node.headers([last]), []
    header = headers[-1]
    if header is None:
        raise EmptyPromise("a block that the provider has named isn't there")
    if not first <= consistency.height_of(header) <= last:
        raise TryAgain("another block than was asked for")
    scheme = verification.Scheme.of(at.verify)
    verification.check_hashes(node, [header], scheme)
    logs = consistency.within(logs, first, header)
    logs, reached = verification.verified_range(
        node, first, header.height, logs, log_filter, scheme
    )
    if reached < header.height:
        [header] = verification.headers(node, [reached])
    times = read_block_times(node, logs, [header]).by_hash
    is_agreed = rpc.agreed(node, [header], evidence=verification.evidence) >= header.height
    return Stretch([header], logs, times=times) if is_agreed else Stretch([], [])


class _Along:
    """A node that gets the logs of a block in the request for receipts, if there is one."""

    def __init__(self, node: Node, log_filter: LogFilter, block_hash: str) -> None:
        self._node = node
        self._wanted = log_filter
        self._hash = block_hash
        self._logs: list[Log] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def receipts(self, hashes: Sequence[str]) -> list[Receipt | None]:
        if not self._wanted.addresses or not hashes or self._logs is not None:
            return self._node.receipts(hashes)
        self._logs, receipts = self._node.logs_and_receipts(self._wanted, self._hash, hashes)
        return receipts

    def logs(self) -> list[Log]:
        if self._logs is None and self._wanted.addresses:
            [self._logs] = self._node.logs_of(self._wanted, [self._hash])
        return self._logs or []


def _newest(node: Node, at: Position, latest: Header, log_filter: LogFilter) -> Stretch:
    """The next block, which the node has given already: its logs by its hash."""
    headers = consistency.chained(at.height, at.hash, [latest])
    along = _Along(node, log_filter, latest.hash)
    try:
        monitored = monitor.receipts_for(at.network_id, headers, cast(Node, along))
        logs = along.logs()
    except (RangeTooLarge, Refused):
        # Too many for one answer, or a node that knows ranges only.
        monitored = monitor.receipts_for(at.network_id, headers, node)
        logs, _ = read_logs(node, _limits_of(node), log_filter, latest.height, latest.height)
    scheme = verification.Scheme.of(at.verify)
    logs = verification.verified(node, headers, logs, log_filter, scheme, by_hash=True)
    height = rpc.agreed(node, headers, log_filter, logs, evidence=verification.evidence)
    if height < latest.height:
        return Stretch([], [])
    return Stretch(headers, logs, monitored, read_block_times(node, logs, headers).by_hash)


def _in_range(
    node: Node, heights: Sequence[int], log_filter: LogFilter, first: int
) -> tuple[list[Header | None], list[Log]]:
    """Headers, and the logs from ``first`` to the last of them; of fewer blocks if the provider
    answers for fewer only. Then a single header is that of the last block."""
    limits = _limits_of(node)
    while True:
        last = min(heights[-1], first + limits.of(node.provider).width - 1)
        blocks = last - first + 1
        requested = [height for height in heights if height < last] + [last]
        try:
            with limits.asking(node.provider, blocks) as answered:
                headers, logs = node.headers_and_logs(requested, log_filter, first)
                answered(weight_of(logs))
        except REFUSALS_OF_LOGS as refusal:
            if limits.refused(node.provider, blocks, refusal):
                continue
            return node.headers(requested), read_logs(node, limits, log_filter, first, last)[0]
        return headers, logs


def forget() -> None:
    """Begin as a new process does: nothing is known of providers."""
    _limits.clear()


def _limits_of(node: Node) -> Limits:
    return _limits.setdefault(node.network_id, Limits(node.network_id))


def _header(answer: msgspec.Raw | NodeFailure) -> Header | None:
    if isinstance(answer, NodeFailure):
        raise answer
    return header_in(answer)
