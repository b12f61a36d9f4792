"""Blocks that are final, read by ranges, some of them ahead of the one that is being stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from time import monotonic
from typing import Final, NamedTuple

from django.db import connections

from chain import rpc
from chain.core.failures import MissingReceipts, TryAgain
from chain.core.node import Log, Node
from chain.indexing import verification
from chain.indexing.block_times import read_block_times
from chain.indexing.contracts import Catalogue
from chain.indexing.history.progress import Group, Part, commit
from chain.indexing.history.proofs import block_above, prove_blocks
from chain.indexing.history.recent import look_behind
from chain.indexing.history.unavailable import has_history, provider_trouble
from chain.indexing.log_ranges import Limits, first_blocks, read_logs, weight_of
from chain.indexing.storage import block_rows
from chain.indexing.storage.events import make_ready

_READERS: Final = 2
_FIRST: Final = 16  # blocks: nothing else is read or stored meanwhile
_AHEAD: Final = 6  # ranges: more than one commit takes, so that reading goes on meanwhile
_HEAVIEST: Final = 40_000  # logs that are held at once, of usual size
_COMMIT: Final = 10_000  # events that are committed at once, as soon as there are so many
_SOME: Final = 2_000  # events that are committed while the next ones aren't read yet
_PATIENCE: Final = 1.0  # seconds after which fewer are
_AT_FIRST: Final = 500  # events that are committed at once while none is stored


class _Read(NamedTuple):
    part: Part
    weight: int


_Submit = Callable[[Callable[[int, int], _Read], int, int], Future[_Read]]


def read_history(group: Group, chosen: Catalogue, final: int, end: float) -> None:
    """Read on up to ``final`` at most, until ``end`` (of ``time.monotonic``). Memory is bounded:
    about ``_HEAVIEST`` logs are held, however many there are."""
    last = min(group.last, final)
    reader = _Reader(group, chosen, final)
    if reader.needs_proof and not prove_blocks(
        group.network_id, group.first, last, final, reader.scheme, end
    ):
        return
    with _readers() as submit:
        ahead: deque[tuple[int, Future[_Read]]] = deque()
        ready: list[Part] = []
        following, waiting, held, since = group.first, 0, 0, monotonic()

        def store() -> None:
            if ready:
                commit(group, ready, chosen.version, reader.limits.width, reader.anchor)
                ready.clear()

        while True:
            while (
                following <= last
                and len(ahead) < (_AHEAD if reader.limits.are_known else 1)
                and held + waiting < _HEAVIEST
                and (monotonic() < end or not (ahead or ready))
            ):
                to = reader.end_of(following, last)
                ahead.append((to, submit(reader.read, following, to)))
                following = to + 1
            if not ahead:
                store()
                break
            to, future = ahead.popleft()
            try:
                part, weight = future.result()
            except BaseException:
                # What was read before it is good.
                store()
                raise
            if part.last < to:
                ahead.appendleft((to, submit(reader.read, part.last + 1, to)))
            ready.append(part)
            held += weight
            waiting = weight * len(ahead)  # if the next ranges weigh as much as this one
            if weight and group.is_empty:
                # An operator may be waiting for the first events: nothing is read before them.
                group.is_empty = False
                store()
                held, since = 0, monotonic()
                continue
            next_is_ready = ahead and ahead[0][1].done()
            if held >= (_COMMIT if next_is_ready else _SOME) or monotonic() - since > _PATIENCE:
                store()
                held, since = 0, monotonic()


class _Reader:
    """Reads and decodes ranges, in any thread."""

    def __init__(self, group: Group, chosen: Catalogue, final: int) -> None:
        self.limits = Limits(group.network_id, group.step, _FIRST)
        self._network_id = group.network_id
        self._chosen = chosen
        self._final = final
        self.anchor = next(iter(block_rows.between(group.network_id, final, final)), None)
        self._known: set[str] = set()
        self._first = group.first
        self._since = group.begin
        self.scheme = verification.Scheme.of_network(group.network_id)
        self.needs_proof = self.scheme.every_block and verification.have_provable_hashes(
            group.network_id
        )
        self._may_be_first = group.is_empty

    def end_of(self, first: int, last: int) -> int:
        """The last block of the next range, which begins with ``first``."""
        end = min(last, first + self.limits.width - 1)
        if self.scheme.share < 1:
            return end
        return min(end, verification.end_of_window(first))  # a block that may be proved

    def read(self, first: int, last: int) -> _Read:
        """The events from ``first`` on, of as many blocks as the provider gives."""

        def step(node: Node) -> tuple[list[Log], int, dict[str, str]]:
            with provider_trouble():
                self._check(node)
                logs, reached = read_logs(node, self.limits, self._chosen.wanted, first, last)
                logs, reached = verification.verified_range(
                    node,
                    first,
                    reached,
                    logs,
                    self._chosen.wanted,
                    self.scheme,
                    since=self._since,
                    above=block_above(self._network_id, reached) if self.needs_proof else None,
                )
                look_behind(node, self._chosen, logs)
                return logs, reached, read_block_times(node, logs).by_hash

        logs, reached, times = rpc.attempt(self._network_id, step)
        if logs and self._may_be_first:
            self._may_be_first = False
            logs, reached = first_blocks(logs, reached, _AT_FIRST)
        rows = self._chosen.read(logs, times)
        return _Read(Part(reached, make_ready(rows)), weight_of(logs))

    def _check(self, node: Node) -> None:
        """Raise ``TryAgain`` unless the provider has the final block that is stored, and receipts
        of the first ones that are read. One that is behind, or has pruned its history, would return
        no logs."""
        if node.provider in self._known and not self.scheme.every_block:
            return
        header = node.header(self._final)
        if header is None:
            raise TryAgain("the provider doesn't have the final blocks yet")
        if self.anchor is not None and header.hash != self.anchor[1]:
            raise TryAgain("the provider has another chain")
        if not self.scheme.every_block and not has_history(node, self._first, self._final):
            raise MissingReceipts(f"the provider doesn't have block {self._first} any more")
        self._known.add(node.provider)


@contextmanager
def _readers() -> Iterator[_Submit]:
    """Threads to read in; their connections to the database end with them."""
    threads = [ThreadPoolExecutor(1, "backfill") for _ in range(_READERS)]
    turns = cycle(threads)
    try:
        yield lambda work, first, last: next(turns).submit(work, first, last)
    finally:
        for thread in threads:
            thread.submit(connections.close_all)
        for thread in threads:
            thread.shutdown()
