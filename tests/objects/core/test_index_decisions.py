"""Which index is built, and which one is dropped again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objects.core.indexes.decisions import (
    MAX_LEARNED,
    MAX_SHARE,
    MIN_ROWS,
    Cost,
    Trial,
    fits,
    suggestions,
    verdict,
)
from objects.core.indexes.shapes import Shape
from objects.core.schema.definition import ClassSchema, FieldType

SCHEMA = ClassSchema("Game", {name: FieldType("Number") for name in ("rank", "level", "won")})
BY_RANK = Shape((("rank", "range"),), (("rank", False),))
BY_LEVEL = Shape((("level", "range"),), (("level", False),))
EQUAL = Shape((("won", "equality"),), (("rank", False),))
BUSY = Cost(calls=100, seconds=5.0, results=2000)
ROWS = 100_000


def fields(costs, rows=ROWS, existing=(), refused=()):
    return [suggestion.fields for suggestion in suggestions(SCHEMA, rows, costs, existing, refused)]


def test_the_shape_that_costs_most_comes_first():
    costs = {BY_RANK: BUSY, BY_LEVEL: Cost(200, 9.0, 4000)}
    assert fields(costs) == [(("level", 1),), (("rank", 1),)]


@pytest.mark.parametrize(
    "cost",
    [
        Cost(),
        Cost(10, 5.0, 200),  # not often enough
        Cost(100, 0.6, 2000),  # not much in all
        Cost(10_000, 20.0, 200_000),  # 2 ms each
        Cost(100, 5.0, 100 * 20_000),  # a large part of the class
        Cost(100, 5.0, 100 * 5_000),  # as long as that many results take
    ],
)
def test_what_an_index_would_not_help_gets_none(cost):
    assert fields({BY_RANK: cost}) == []


def test_small_classes_get_none():
    assert fields({BY_RANK: BUSY}, rows=MIN_ROWS - 1) == []


def test_what_is_there_or_was_in_vain_is_not_suggested():
    assert fields({BY_RANK: BUSY}, existing=[(("rank", -1), ("level", 1))]) == []
    assert fields({BY_RANK: BUSY}, existing=[(("level", 1), ("rank", 1))]) == [(("rank", 1),)]
    assert fields({BY_RANK: BUSY}, refused=[(("rank", 1),)]) == []


def test_the_next_candidate_follows_one_that_was_in_vain():
    item = Shape((("level", "range"),), (("rank", False),))
    assert fields({item: BUSY}) == [(("rank", 1),)]
    assert fields({item: BUSY}, refused=[(("rank", 1),)]) == [(("level", 1),)]


def test_equality_has_to_be_slower_because_an_index_may_serve_it_already():
    assert fields({EQUAL: Cost(1000, 10.0, 1000)}) == []
    assert fields({EQUAL: Cost(1000, 30.0, 1000)}) == [(("won", 1), ("rank", 1))]


def test_one_index_is_suggested_once():
    turned = Shape((), (("rank", True),))
    assert fields({BY_RANK: BUSY, turned: BUSY}) == [(("rank", 1),)]


@given(
    st.floats(0, 1e9),
    st.lists(st.floats(0, 1e9), max_size=12),
    st.floats(0, 1e10),
)
def test_limits_are_kept(estimated, others, table):
    if fits(estimated, others, table):
        assert len(others) < MAX_LEARNED
        assert estimated + sum(others) <= MAX_SHARE * table


def test_an_index_that_helps_stays():
    assert verdict(Trial(Cost(100, 10.0), Cost(100, 0.1)), []) is None


def test_nothing_is_decided_before_there_were_enough_queries():
    assert verdict(Trial(Cost(100, 10.0), Cost(5, 5.0)), []) is None


def test_an_index_that_does_not_help_goes():
    assert "not much faster" in (verdict(Trial(Cost(100, 10.0), Cost(100, 8.0)), []) or "")


def test_an_index_that_makes_other_queries_slower_goes():
    own = Trial(Cost(100, 10.0), Cost(100, 1.0))
    slower = Trial(Cost(1000, 1.0), Cost(1000, 20.0))
    assert "other queries" in (verdict(own, [slower]) or "")
    assert verdict(own, [Trial(Cost(1000, 1.0), Cost(100, 2.0))]) is None
    assert verdict(own, [Trial(Cost(1000, 10.0), Cost(1000, 12.0))]) is None
