"""What is missing is what is wanted without what has been read."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chain.core.blocks.spans import Span, Spans, holds, segments, size, union, up_to, without

BLOCKS = st.integers(0, 40)
SPANS = st.lists(st.tuples(BLOCKS, BLOCKS), max_size=8)


def blocks(spans: list[Span]) -> set[int]:
    return {block for first, last in spans for block in range(first, last + 1)}


def assert_tidy(spans: Spans) -> None:
    assert all(first <= last for first, last in spans)
    assert all(a[1] + 1 < b[0] for a, b in pairwise(spans))


@given(SPANS, SPANS)
def test_arithmetic_is_that_of_sets(one: list[Span], other: list[Span]) -> None:
    for result, expected in (
        (union(one, other), blocks(one) | blocks(other)),
        (without(one, other), blocks(one) - blocks(other)),
        (up_to(one, 20), blocks(one) & set(range(21))),
    ):
        assert blocks(result) == expected
        assert size(result) == len(expected)
        assert_tidy(result)


@given(SPANS, st.tuples(BLOCKS, BLOCKS))
def test_spans_hold_a_span_with_all_of_its_blocks(spans: list[Span], span: Span) -> None:
    assert holds(spans, span) == (blocks([span]) <= blocks(spans))


def test_spans_that_touch_are_one() -> None:
    assert union([(5, 9)], [(0, 4)]) == [(0, 9)]


@given(st.dictionaries(st.sampled_from("abc"), SPANS), st.tuples(BLOCKS, BLOCKS))
def test_segments_are_covered_as_a_whole_by_the_same_names(
    covered: dict[str, list[Span]], span: Span
) -> None:
    span = (min(span), max(span))
    results = segments(covered, span)
    expected = {
        block: sorted(name for name, spans in covered.items() if block in blocks(spans))
        for block in blocks([span])
    }
    message = {block: names for piece, names in results for block in blocks([piece])}
    assert message == {block: names for block, names in expected.items() if names}
    assert [piece for piece, _ in results] == sorted(piece for piece, _ in results)
