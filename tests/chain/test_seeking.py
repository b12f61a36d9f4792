"""The blocks of contracts are found among any number of blocks, by few calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.core.failures import Refused, TryAgain
from chain.core.node import Node
from chain.indexing.history.creation_block import Search, creation_blocks


class History:
    """A node that knows since when there is code, and the past from ``oldest`` on."""

    network_id, provider = 1, "history"

    def __init__(self, created: int | Mapping[str, int], oldest: int = 0) -> None:
        self.created, self.oldest = created, oldest
        self.calls = self.requests = 0
        self.failure: TryAgain | None = None

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        self.requests += -(-len(calls) // 100)
        self.calls += len(calls)
        return [self.code(params[0], int(params[1], 16)) for _, params in calls]

    def code(self, address: str, height: int) -> Any:
        if self.failure is not None:
            return self.failure
        if height < self.oldest:
            return Refused(-32000, "missing trie node")
        created = self.created if isinstance(self.created, int) else self.created[address]
        return "0x6001" if height >= created else "0x"

    def creation(self, first: int, last: int) -> int | None:
        [block] = self.creations([Search("0x01", first, last)])
        return block

    def creations(self, searches: Sequence[Search]) -> list[int | None]:
        return creation_blocks(cast(Node, self), searches)


BLOCKS = st.integers(0, 30_000_000)


@given(BLOCKS, BLOCKS, BLOCKS)
def test_the_first_block_with_code_is_found(first: int, created: int, last: int) -> None:
    first, created, last = sorted((first, created, last))
    node = History(created)
    assert node.creation(first, last) == created
    assert node.requests <= 10
    assert node.calls <= 72


@given(BLOCKS, BLOCKS)
def test_a_contract_that_has_no_code_at_the_end_may_have_been_there_before(
    one: int, other: int
) -> None:
    first, last = sorted((one, other))
    assert History(last + 1).creation(first, last) is None


@given(st.lists(st.tuples(BLOCKS, BLOCKS), min_size=1, max_size=100))
def test_many_contracts_take_as_many_requests_as_one(ends: list[tuple[int, int]]) -> None:
    created = {hex(at): min(blocks) for at, blocks in enumerate(ends)}
    searches = [Search(hex(at), 0, max(blocks)) for at, blocks in enumerate(ends)]
    node = History(created)
    assert node.creations(searches) == [*created.values()]
    assert node.requests <= 60
    assert node.calls <= 72 * len(ends)


def test_a_hundred_contracts_take_a_request_for_each_halving() -> None:
    created = {hex(at): 299_000 * at for at in range(100)}
    node = History(created)
    searches = [Search(address, 0, 30_000_000) for address in created]
    assert node.creations(searches) == [*created.values()]
    assert node.requests <= 2 + 25
    assert node.calls <= 100 * 27


def test_a_node_that_forgets_does_not_say_it() -> None:
    assert History(500, oldest=900).creation(0, 1000) is None


def test_a_node_that_fails_is_no_answer() -> None:
    node = History(500)
    node.failure = TryAgain("no answer")
    with pytest.raises(TryAgain):
        node.creation(0, 1000)
