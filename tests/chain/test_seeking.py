"""The block of a contract is found among any number of blocks, by few calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.core.failures import Refused, TryAgain
from chain.indexing.history.creation_block import made_in


class History:
    """A node that knows since when there is code, and the past from ``oldest`` on."""

    network_id, provider = 1, "history"

    def __init__(self, made: int, oldest: int = 0) -> None:
        self.made, self.oldest = made, oldest
        self.calls = self.requests = 0
        self.failure: TryAgain | None = None

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        self.requests += 1
        self.calls += len(calls)
        return [self.code(int(params[1], 16)) for _, params in calls]

    def code(self, height: int) -> Any:
        if self.failure is not None:
            return self.failure
        if height < self.oldest:
            return Refused(-32000, "missing trie node")
        return "0x6001" if height >= self.made else "0x"


BLOCKS = st.integers(0, 30_000_000)


@given(BLOCKS, BLOCKS, BLOCKS)
def test_the_first_block_with_code_is_found(first: int, made: int, last: int) -> None:
    first, made, last = sorted((first, made, last))
    node = History(made)
    assert made_in(node, "0x01", first, last) == made
    assert node.requests <= 10
    assert node.calls <= 72


@given(BLOCKS, BLOCKS)
def test_a_contract_that_has_no_code_at_the_end_may_have_been_there_before(
    one: int, other: int
) -> None:
    first, last = sorted((one, other))
    assert made_in(History(last + 1), "0x01", first, last) is None


def test_a_node_that_forgets_does_not_say_it() -> None:
    assert made_in(History(500, oldest=900), "0x01", 0, 1000) is None


def test_a_node_that_fails_is_no_answer() -> None:
    node = History(500)
    node.failure = TryAgain("no answer")
    with pytest.raises(TryAgain):
        made_in(node, "0x01", 0, 1000)
