"""Logs of ranges are read in responses of bounded size, for blocks of any content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from chain.core.node import Log, LogFilter, Node
from chain.core.ranges import MOST
from chain.indexing.log_ranges import Limits, read_logs

pytestmark = pytest.mark.django_db

WANTED = LogFilter(addresses=(f"0x{'11' * 20}",))


class Full:
    """A node whose blocks have so many logs each, from a block on, of so many bytes."""

    network_id = 31337
    provider = "full"

    def __init__(self, a_block: int, *, above: int = 0, size: int = 0) -> None:
        self._a_block = a_block
        self._above = above
        self._size = size
        self.largest = 0

    def logs(self, log_filter: LogFilter, first: int, last: int) -> list[Log]:
        results = [
            self._log(height, index)
            for height in range(max(first, self._above + 1), last + 1)
            for index in range(self._a_block)
        ]
        self.largest = max(self.largest, len(results))
        return results

    def _log(self, height: int, index: int) -> Log:
        place = f"0x{height:064x}"
        data = f"0x{'00' * self._size}"
        return Log(WANTED.addresses[0], [], data, hex(height), place, place, "0x0", hex(index))


def read_all(node: Full, last: int, width: int) -> Sequence[list[Log]]:
    limits, first, results = Limits(node.network_id, width), 1, []
    while first <= last:
        logs, first = read_logs(cast(Node, node), limits, WANTED, first, last)
        results.append(logs)
        first += 1
    return results


@pytest.mark.parametrize(("a_block", "blocks"), [(30, 1000), (1, 25_000), (7000, 4)])
def test_of_a_dense_range_the_first_blocks_are_kept(a_block: int, blocks: int) -> None:
    parts = read_all(Full(a_block), blocks, blocks)
    assert max(map(len, parts)) <= max(MOST, a_block)
    places = [(log.height, log.index) for part in parts for log in part]
    assert places == [(h, n) for h in range(1, blocks + 1) for n in range(a_block)]


def test_large_logs_are_as_many_as_their_size_allows() -> None:
    parts = read_all(Full(1, size=10_000), 2000, 2000)
    assert max(map(len, parts)) <= MOST / 10
    assert sum(map(len, parts)) == 2000


def test_after_blocks_without_logs_dense_ones_are_soon_read_as_they_should() -> None:
    node = Full(40, above=6000)
    parts = read_all(node, 7000, 64)
    assert sum(map(len, parts)) == 40_000
    assert [len(part) for part in parts if len(part) > MOST] == []
