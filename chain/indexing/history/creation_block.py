"""Finding the blocks in which contracts were created, of many contracts in one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from django.db import transaction

from chain import rpc
from chain.core.failures import NodeFailure, TryAgain
from chain.core.node import Node
from chain.indexing.history.progress import Group
from chain.models import Backfill
from objects.database.orm import orm_queries

_MOST: Final = 100
"""Contracts that are searched for together, and heights that are requested at once."""
_AT_ONCE: Final = 7  # heights of one contract
_EARLIER: Final = 4
"""Contracts begin together with an older one if they have at least three quarters of its blocks."""


class Search(NamedTuple):
    """A contract, and the blocks among which its creation is searched for."""

    address: str
    first: int
    last: int


def seek(group: Group) -> None:
    """Let each row begin where its contract was created; from its first block on if no node knows.

    Blocks before it have no logs of it, so they count as read. Contracts that were created close
    together begin together, which takes fewer requests. If a provider is too slow for many
    contracts, fewer are searched for at once. Raises ``NodeFailure`` if one is too many; the blocks
    of those before are stored.
    """
    searches = [
        Search(address, group.first, last)
        for address, last in zip(group.addresses, group.lasts, strict=True)
    ]
    most, done = _MOST, 0
    while done < len(searches):
        part = searches[done : done + most]
        try:
            blocks = rpc.attempt(group.network_id, partial(creation_blocks, searches=part))
        except NodeFailure:
            if len(part) == 1:
                raise
            most = len(part) // 2
            continue
        _store(group, dict(zip(group.ids[done : done + len(part)], blocks, strict=True)))
        done += len(part)


def creation_blocks(node: Node, searches: Sequence[Search]) -> list[int | None]:
    """The first block of each search after which there is code at the address. None if there is
    none after the last, since it may have been there before, or if the node doesn't know the past.
    """
    progress = [_Progress(search) for search in searches]
    while unfinished := [each for each in progress if not each.is_finished]:
        count = max(1, min(_AT_ONCE, _MOST // len(unfinished)))
        heights = [each.next_heights(count) for each in unfinished]
        calls = [
            ("eth_getCode", (each.search.address, hex(height)))
            for each, some in zip(unfinished, heights, strict=True)
            for height in some
        ]
        codes = iter(map(_is_code, node.batch(calls)))
        for each, some in zip(unfinished, heights, strict=True):
            each.note([(height, next(codes)) for height in some])
    return [each.block for each in progress]


class _Progress:
    """How far the search for one contract has come."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.is_finished = search.last < search.first
        self.block: int | None = None
        self._without_code, self._with_code = search.first - 1, search.last + 1

    def next_heights(self, count: int) -> list[int]:
        """Some heights, evenly apart, between those of which it is known whether there is code; at
        first the last one as well."""
        low, high = self._without_code, self._with_code
        count = min(count, high - low - 1)
        heights = [low + (high - low) * step // (count + 1) for step in range(1, count + 1)]
        last = self.search.last
        return heights if high <= last or heights[-1] == last else [*heights, last]

    def note(self, codes: Sequence[tuple[int, bool | None]]) -> None:
        """Note at which heights there is code, None where the node can't say."""
        for height, has_code in codes:
            if has_code is None:
                self.is_finished = True
                return
            if has_code:
                self._with_code = height
                break
            self._without_code = height
        if self._with_code - self._without_code == 1:
            self.is_finished = True
            self.block = self._with_code if self._with_code <= self.search.last else None


def _is_code(answer: object) -> bool | None:
    if isinstance(answer, TryAgain):
        raise answer
    if isinstance(answer, NodeFailure) or not isinstance(answer, str):
        return None
    return len(answer) > 2


def _store(group: Group, blocks: Mapping[int, int | None]) -> None:
    """Let rows, by their ids, begin at these blocks or at that of one that is older."""
    start = None
    with orm_queries(), transaction.atomic():
        for row_id, block in sorted(blocks.items(), key=lambda item: item[1] or group.first):
            begin = group.first if block is None else block
            if start is None or (begin - start) * _EARLIER > group.last - start:
                start = begin
            Backfill.objects.filter(
                pk=row_id, next_block=group.first, seeking=True, done_at=None
            ).update(next_block=start, seeking=False, trouble=None, failures=0)
