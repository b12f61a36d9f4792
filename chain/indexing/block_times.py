"""The times of the blocks of logs that were read without headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from chain.core.blocks.times import times_of, undated, wire_times
from chain.core.failures import EmptyPromise, TryAgain
from chain.core.node import Header, Log, Node

_AT_ONCE: Final = 100
"""Headers that are held with the hashes of their transactions, which may be 100 KB each."""


class BlockTimes(NamedTuple):
    """``by_hash`` are times of blocks, as clients read them; a block whose header names none is
    left out. ``headers`` are those that were requested for it, without their transactions."""

    by_hash: dict[str, str]
    headers: list[Header]


def read_block_times(node: Node, logs: Sequence[Log], headers: Sequence[Header] = ()) -> BlockTimes:
    """The times of the blocks that these logs are in: by ``headers``, as far as they are at hand,
    else by the logs' own ``blockTimestamp``, else by headers that are requested, each once.

    To be called in the step in which the node gave the logs. Raises ``TryAgain`` if the node
    contradicts itself, or doesn't have a block that it has given logs of, and other failures of
    requests.
    """
    times = times_of(logs, headers)
    missing = undated(logs, times.keys() | {header.hash for header in headers})
    requested = _headers(node, missing) if missing else []
    if requested:
        times = times_of(logs, [*headers, *requested])
    return BlockTimes(wire_times(times), requested)


def _headers(node: Node, heights: dict[str, int]) -> list[Header]:
    hashes = [*heights]
    headers: list[Header] = []
    for start in range(0, len(hashes), _AT_ONCE):
        some = hashes[start : start + _AT_ONCE]
        for hash_, header in zip(some, node.headers(some), strict=True):
            if header is None:
                raise EmptyPromise("a block that the provider has given logs of isn't there")
            if (header.hash, header.height) != (hash_, heights[hash_]):
                raise TryAgain("another block than was requested")
            headers.append(replace(header, transactions=[]))
    return headers
