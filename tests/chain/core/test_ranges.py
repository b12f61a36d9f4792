"""Block ranges find what a provider answers, quickly, and never ask for nothing."""

from __future__ import annotations

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.core.ranges import FEW, FIRST_WIDTH, MANY, MOST, SLOW, WIDEST, Ranges

SIZES = st.integers(1, WIDEST)


def ask(
    ranges: Ranges,
    most: int,
    *,
    hint: bool = False,
    is_structural: bool = True,
    density: float = 0.0,
    cap: int = 10**9,
) -> bool:
    """One request to a provider that answers at most so many blocks, and logs."""
    blocks = ranges.width
    assert blocks >= 1
    logs = int(blocks * density)
    if blocks > most or logs > cap:
        ranges.too_large(blocks, most if hint else None, is_structural=is_structural)
        return False
    ranges.succeeded(blocks, logs, 0.1)
    return True


def until_answered(ranges: Ranges, most: int, **style: bool) -> int:
    refusals = 0
    while not ask(ranges, most, **style):
        refusals += 1
    return refusals


@given(SIZES, SIZES, st.booleans())
def test_halving_takes_as_many_refusals_as_its_logarithm(
    width: int, most: int, is_structural: bool
) -> None:
    refusals = until_answered(Ranges(width), most, is_structural=is_structural)
    assert refusals <= max(0, ceil(log2(width / most)))


@given(SIZES, SIZES, st.booleans())
def test_a_hint_is_followed_at_once(width: int, most: int, is_structural: bool) -> None:
    assert until_answered(Ranges(width), most, hint=True, is_structural=is_structural) <= 1


@given(st.integers(1, 100_000))
def test_a_ceiling_that_was_named_is_used_and_not_tried_again(most: int) -> None:
    ranges = Ranges()
    answers = [ask(ranges, most, hint=True) for _ in range(200)]
    assert answers.count(False) <= 1
    assert ranges.width == most


@given(st.integers(1, 100_000))
def test_a_ceiling_that_was_not_named_is_found_and_then_left_alone(most: int) -> None:
    ranges = Ranges()
    answers = [ask(ranges, most) for _ in range(1000)]
    assert ranges.width == most
    # The first refusals, and one for each halving of what is unknown.
    assert answers.count(False) <= 2 * ceil(log2(max(2, most))) + 4
    assert False not in answers[-200:]


def test_a_hint_that_makes_no_sense_halves() -> None:
    ranges = Ranges(4999)
    ranges.too_large(4999, 5000, is_structural=True)
    assert ranges.width == 2499
    ranges.too_large(2499, 0, is_structural=False)
    assert ranges.width == 1249


def test_two_refusals_of_one_width_halve_once() -> None:
    ranges = Ranges(1000)
    ranges.too_large(1000, is_structural=False)
    ranges.too_large(1000, is_structural=False)
    assert ranges.width == 500


def test_one_block_is_the_least() -> None:
    ranges = Ranges(2)
    assert ranges.too_large(2, is_structural=False)
    assert not ranges.too_large(1, is_structural=False)
    ranges.too_slow(1)
    assert ranges.width == 1


@given(st.floats(0.001, 5000))
def test_answers_become_some_thousand_logs(density: float) -> None:
    ranges = Ranges()
    for _ in range(12):
        ask(ranges, WIDEST, density=density)
    logs = ranges.width * density
    assert int(logs) <= MANY or ranges.width == 1
    assert logs >= FEW / 2 - density or ranges.width == WIDEST


def test_empty_blocks_are_soon_requested_by_the_hundred_thousand() -> None:
    ranges = Ranges()
    for _ in range(4):
        ask(ranges, WIDEST)
    assert ranges.width >= FIRST_WIDTH * 8**4


def test_after_dense_blocks_the_next_dense_ones_are_no_surprise() -> None:
    ranges = Ranges(100)
    for _ in range(3):
        ask(ranges, WIDEST, density=30)
    assert ranges.width * 30 <= MANY
    for _ in range(2):
        ask(ranges, WIDEST)
        assert ranges.width * 30 <= 2 * MOST


def test_dense_blocks_that_are_long_gone_slow_nothing_down() -> None:
    ranges = Ranges(100)
    ask(ranges, WIDEST, density=30)
    for _ in range(30):
        ask(ranges, WIDEST, density=0.001)
    assert ranges.width == WIDEST


def test_a_limit_on_results_is_tried_again_once_in_ten_answers() -> None:
    ranges = Ranges(1000)
    ranges.too_large(1000, is_structural=False)
    for _ in range(9):
        assert ranges.width == 500
        ask(ranges, WIDEST)
    assert ranges.width == 1000


def test_a_slow_answer_makes_the_next_range_smaller() -> None:
    ranges = Ranges(1000)
    ranges.succeeded(1000, 10, 4 * SLOW)
    assert ranges.width == 250
    ranges.too_slow(250)
    assert ranges.width == 125


def test_less_than_was_allowed_says_nothing_about_more() -> None:
    ranges = Ranges(1000)
    ranges.succeeded(3, 0, 0.1)
    assert ranges.width == 1000


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20_000), st.floats(0, 60))))
def test_whatever_happens_the_width_is_between_one_and_the_ceiling(
    happenings: list[tuple[int, int, float]],
) -> None:
    ranges = Ranges(ceiling=10_000)
    for kind, number, seconds in happenings:
        blocks = ranges.width
        if kind == 0:
            ranges.too_large(blocks, number or None, is_structural=False)
        elif kind == 1:
            ranges.too_large(blocks, number or None, is_structural=True)
        elif kind == 2:
            ranges.too_slow(blocks)
        elif kind == 3:
            ranges.refused(blocks)
        elif kind == 4:
            ranges.failed(blocks)
        else:
            ranges.succeeded(blocks, number, seconds)
        assert 1 <= ranges.width <= ranges.ceiling <= 10_000


@pytest.mark.parametrize("cap", [10_000, 2_000])
def test_a_cap_on_results_is_stayed_below_in_the_long_run(cap: int) -> None:
    ranges = Ranges(100_000)
    answers = [ask(ranges, WIDEST, is_structural=False, density=3, cap=cap) for _ in range(100)]
    assert answers.count(False) <= 8 + 10


def ask_for_no_reason(ranges: Ranges, most: int) -> bool:
    """As ``ask``, of a provider that refuses by a sentence that isn't understood."""
    blocks = ranges.width
    if blocks <= most:
        ranges.succeeded(blocks, 0, 0.1)
        return True
    assert ranges.refused(blocks)
    return False


@given(SIZES, SIZES)
def test_a_limit_without_a_reason_is_found_by_halving(width: int, most: int) -> None:
    ranges = Ranges(width)
    refusals = 0
    answered = 0
    while answered <= min(width, most) // 2:
        blocks = ranges.width
        is_answered = ask_for_no_reason(ranges, most)
        answered = max(answered, blocks) if is_answered else answered
        refusals += not is_answered
    assert refusals <= ceil(log2(max(2, width / most))) + 1


@given(st.integers(1, 100_000))
def test_a_limit_without_a_reason_is_seldom_exceeded_again(most: int) -> None:
    ranges = Ranges()
    answers = [ask_for_no_reason(ranges, most) for _ in range(2000)]
    assert answers.count(False) <= 2 * ceil(log2(max(2, most))) + 20
    assert answers[-1000:].count(False) <= 3
    assert ranges.width > most // 2 or most < 3


@given(SIZES, st.integers(1, WIDEST), st.booleans())
def test_a_provider_that_refuses_everything_costs_three_requests_and_teaches_nothing(
    width: int, ceiling: int, is_structural: bool
) -> None:
    ranges = Ranges(width, ceiling)
    before = (ranges.width, ranges.ceiling, ranges.limit)
    requests = 1
    while ranges.refused(ranges.width):
        requests += 1
    assert requests <= 3
    assert (ranges.width, ranges.ceiling, ranges.limit) == before
    # The same where the reason seems to be understood.
    while ranges.too_large(ranges.width, is_structural=is_structural):
        pass
    assert (ranges.width, ranges.ceiling, ranges.limit) == before


def test_after_a_failure_the_next_range_is_half_and_grows_again() -> None:
    ranges = Ranges(64)
    ranges.failed(64)
    assert ranges.width == 32
    ranges.succeeded(32, 0, 0.1)
    assert ranges.width == 256
