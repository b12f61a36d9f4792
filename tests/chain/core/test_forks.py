"""The last block that two chains share is found, with few questions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain.core.blocks.forks import WINDOW, fork_point
from chain.core.failures import Moved


class Trees:
    """A tree of blocks in which each has a parent, and the questions asked of it."""

    def __init__(self, random: Random, height: int) -> None:
        self.parents: dict[str, str] = {}
        self.heights = {"g": 0}
        tip = "g"
        for _ in range(height):
            tip = self._grow(tip)
        self.tips = [tip]
        for _ in range(random.randrange(1, 4)):
            tip = random.choice(list(self.heights))
            for _ in range(random.randrange(1, height + 5)):
                tip = self._grow(tip)
            self.tips.append(tip)
        self.questions: list[int] = []

    def _grow(self, tip: str) -> str:
        new = f"b{len(self.heights)}"
        self.parents[new] = tip
        self.heights[new] = self.heights[tip] + 1
        return new

    def chain(self, tip: str) -> dict[int, str]:
        results = {self.heights[tip]: tip}
        while tip in self.parents:
            tip = self.parents[tip]
            results[self.heights[tip]] = tip
        return results

    def find(self, ours: str, theirs: str, floor: int) -> tuple[int | None, int | None]:
        """What is found, and what is so."""
        mine, other = self.chain(ours), self.chain(theirs)
        top = min(self.heights[ours], self.heights[theirs])
        floor = min(floor, top)
        self.questions.clear()

        def ask(heights: Sequence[int]) -> dict[int, str]:
            self.questions.append(len(heights))
            return {at: other[at] for at in heights}

        results = fork_point(
            lambda first, last: {at: mine[at] for at in range(first, last + 1)},
            ask,
            floor=floor,
            top=top,
        )
        shared = max(at for at in range(top + 1) if mine[at] == other[at])
        return results, shared if shared >= floor else None


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 400))
def test_the_highest_common_ancestor_is_found(random: Random, height: int) -> None:
    trees = Trees(random, height)
    ours, theirs = random.choice(trees.tips), random.choice(trees.tips)
    results, shared = trees.find(ours, theirs, random.randrange(height))
    assert results == shared
    assert len(trees.questions) <= 3
    assert max(trees.questions) <= WINDOW


@pytest.mark.parametrize("depth", [1, 2, 30, 63])
def test_one_question_is_enough_for_a_window_of_blocks(depth: int) -> None:
    request = _deep(500, depth, floor=0)
    assert len(request) == 1


def test_deeper_ones_cost_a_question_for_each_power_of_the_window() -> None:
    assert len(_deep(100_000, 64, floor=0)) <= 4
    assert len(_deep(100_000, 70_000, floor=0)) <= 4
    assert max(_deep(100_000, 99_999, floor=0)) <= WINDOW


def test_nothing_below_the_floor_is_asked_about() -> None:
    observed: list[int] = []

    def theirs(heights: Sequence[int]) -> dict[int, str]:
        observed.extend(heights)
        return dict.fromkeys(heights, "other")

    def ours(first: int, last: int) -> dict[int, str]:
        return dict.fromkeys(range(first, last + 1), "mine")

    assert fork_point(ours, theirs, floor=10, top=500) is None
    assert min(observed) == 10


def test_blocks_that_are_not_known_are_not_requested_about() -> None:
    existing = {0: "a", 10: "b", 20: "c", 21: "d"}

    def ours(first: int, last: int) -> dict[int, str]:
        return {at: item for at, item in existing.items() if first <= at <= last}

    def theirs(heights: Sequence[int]) -> dict[int, str]:
        assert set(heights) <= set(existing)
        return {at: "x" if at > 15 else existing[at] for at in heights}

    assert fork_point(ours, theirs, floor=0, top=21) == 10


def test_an_answer_of_two_chains_is_no_answer() -> None:
    with pytest.raises(Moved):
        fork_point(
            lambda first, last: dict.fromkeys(range(first, last + 1), "a"),
            lambda heights: {at: "a" if at % 2 else "b" for at in heights},
            floor=0,
            top=20,
        )


def _deep(height: int, depth: int, floor: int) -> list[int]:
    """How many heights each question was about, for a reorganisation of this depth."""
    observed: list[int] = []

    def theirs(heights: Sequence[int]) -> dict[int, str]:
        observed.append(len(heights))
        return {at: f"a{at}" if at <= height - depth else f"b{at}" for at in heights}

    def ours(first: int, last: int) -> dict[int, str]:
        return {at: f"a{at}" for at in range(first, last + 1)}

    assert fork_point(ours, theirs, floor=floor, top=height) == height - depth
    return observed
