"""What matching takes is known before it is done."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objects.core.query.parser import parse_where
from realtime.core.effort import comparisons, extent

POINTS = [
    {"__type": "GeoPoint", "latitude": place % 90, "longitude": place % 180} for place in range(250)
]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ({}, 1),
        ({"a": 1}, 1),
        ({"a": 1, "b": 2}, 2),
        ({"a": {"$gt": 1, "$lt": 5}}, 2),
        ({"$or": [{"a": value} for value in range(40)]}, 40),
        ({"$nor": [{"a": 1}, {"$and": [{"b": 1}, {"c": {"$regex": "x"}}]}]}, 3),
        ({"a": {"$in": [*range(1000)]}}, 1),
        ({"a": {"$all": [{"$regex": "^x"}, {"$regex": "^y"}]}}, 2),
        ({"a": {"$geoWithin": {"$polygon": POINTS}}}, 3),
    ],
)
def test_comparisons_are_counted_at_every_depth(where: dict[str, Any], count: int):
    assert comparisons(parse_where(where)) == count


def test_elements_are_counted_at_every_depth():
    assert extent({}) == 1
    assert extent({"a": 1, "b": "text"}) == 3
    assert extent({"a": [1, 2, 3]}) == 5
    assert extent({"a": {"b": [{"c": 1}, {"c": 2}]}}) == 7
    assert extent({"a": "x" * 640}) == 12


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=200),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_the_text_of_an_object_is_longer_than_its_number_of_elements(image: dict[str, Any]):
    assert extent(image) <= len(json.dumps(image, ensure_ascii=False, separators=(",", ":")))
