"""Whether what a node has answered fits together.

Headers and logs come from several calls, and the chain may change between any two of them. What
doesn't fit is dropped with ``Moved`` and read again; so what is stored is part of one chain. A
number that is none is no answer: ``TryAgain``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from chain.core.failures import EmptyPromise, Moved, TryAgain
from chain.core.node import Header, Log

_NUMBER = re.compile(r"0x0{0,64}[0-9a-fA-F]{1,13}")  # that tables hold
_HASH = re.compile(r"0x[0-9a-f]{64}")

Facts = tuple[int, int, str, str, int, str, tuple[str, ...], str]
Place = tuple[int, int]
"""Height and index of a log."""


def chained(number: int, hash_: str, headers: Sequence[Header | None]) -> list[Header]:
    """The headers, if they follow the block with this number and hash without a gap.

    They are of blocks that the node has named: ``EmptyPromise`` if it doesn't have one.
    """
    chain = []
    for header in headers:
        if header is None:
            raise EmptyPromise("a block that the provider has named isn't there")
        number += 1
        if height_of(header) != number or header.parent_hash != hash_:
            raise Moved("a block doesn't follow the one before it")
        hash_ = header.hash
        chain.append(header)
    return chain


def odd_link(headers: Sequence[Header]) -> int | None:
    """The height of the last block that isn't the parent of the next one; None if each is."""
    odd = (a.height for a, b in pairwise(headers) if b.parent_hash != a.hash)
    return max(odd, default=None)


def belonging(logs: Sequence[Log], headers: Sequence[Header]) -> list[Log]:
    """The logs in the order of the chain, each once, if every one is of one of these blocks."""
    heights = {header.hash: header.height for header in headers}
    places = _places(logs)
    for log, (height, _) in zip(logs, places, strict=True):
        if heights.get(log.block_hash) != height:
            raise Moved("a log of another block")
    return _in_order(logs, places)


def within(logs: Sequence[Log], first: int, last: Header) -> list[Log]:
    """The logs in the order of the chain, each once, if they are of blocks from ``first`` to
    ``last``, and those of one height of one block. For blocks that are final."""
    hashes = {last.height: last.hash}
    places = _places(logs)
    for log, (height, _) in zip(logs, places, strict=True):
        if not first <= height <= last.height:
            raise Moved("a log of another block")
        if hashes.setdefault(height, log.block_hash) != log.block_hash:
            raise Moved("logs of two blocks at one height")
    return _in_order(logs, places)


def facts(log: Log) -> Facts:
    """Everything that is stored of a log, for comparing it with another answer about it."""
    return (
        *(log.height, log.index, log.block_hash.lower(), log.transaction_hash.lower()),
        *(int(log.transaction_index, 16), log.address.lower()),
        *(tuple(topic.lower() for topic in log.topics), log.data.lower()),
    )


def are_same(logs: Sequence[Log], other_logs: Sequence[Log]) -> bool:
    """Whether two answers have the same logs, in any order."""
    if [*logs] == [*other_logs]:
        return True
    return {*map(facts, logs)} == {*map(facts, other_logs)}


def contents(logs: Sequence[Log]) -> set[tuple[Any, ...]]:
    """What a header and the receipts of its block prove of its logs: all facts but the hashes of
    their transactions."""
    return {(*facts_of_log[:3], *facts_of_log[4:]) for facts_of_log in map(facts, logs)}


def in_order(logs: Sequence[Log]) -> list[Log]:
    """A node's answer: the logs by height and index, each once, if no place has two different
    ones. ``TryAgain`` if something of them is no number or no hash."""
    _look_at(logs)
    return _in_order(logs, _places(logs))


def _look_at(logs: Sequence[Log]) -> None:
    """Each different text once, since many logs share them: this is done for all that is read."""
    numbers = {log.block_number for log in logs}
    numbers.update([log.log_index for log in logs], [log.transaction_index for log in logs])
    if not all(map(_NUMBER.fullmatch, numbers)):
        raise TryAgain("a log without a number")
    hashes = {log.block_hash for log in logs}
    hashes.update([log.transaction_hash for log in logs])
    if not all(map(_HASH.fullmatch, hashes)):
        raise TryAgain("a log without a hash")


def height_of(header: Header) -> int:
    """The header's height; ``TryAgain`` if it has none."""
    try:
        return header.height
    except ValueError:
        raise TryAgain("a block without a number") from None


def _places(logs: Sequence[Log]) -> list[Place]:
    if any(log.removed for log in logs):
        raise Moved("a log of a block that was removed")
    try:
        return [(log.height, log.index) for log in logs]
    except ValueError:
        raise TryAgain("a log without a number") from None


def _in_order(logs: Sequence[Log], places: Sequence[Place]) -> list[Log]:
    if all(before < after for before, after in pairwise(places)):
        return [*logs]
    by_place: dict[Place, Log] = {}
    for place, log in zip(places, logs, strict=True):
        if by_place.setdefault(place, log) != log:
            raise Moved("two logs at one place")
    return [by_place[place] for place in sorted(by_place)]
