"""Distances, boxes and polygons."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objects.core.query.geo_formulas import distance, in_box, in_polygon
from objects.core.query.tree import EARTH_RADIUS_KM

points = st.tuples(st.floats(-90, 90), st.floats(-180, 180))
SQUARE = ((0.0, 0.0), (0.0, 10.0), (10.0, 10.0), (10.0, 0.0), (0.0, 0.0))
NOTCHED = ((0.0, 0.0), (0.0, 10.0), (10.0, 10.0), (5.0, 5.0), (10.0, 0.0), (0.0, 0.0))


def test_distances_on_the_globe_are_those_of_the_atlas():
    paris, london, sydney = (48.8566, 2.3522), (51.5074, -0.1278), (-33.8688, 151.2093)
    assert distance(paris, london) * EARTH_RADIUS_KM == pytest.approx(343.6, abs=0.5)
    assert distance(london, sydney) * EARTH_RADIUS_KM == pytest.approx(16994, abs=5)


@pytest.mark.parametrize(
    ("a", "b", "radians"),
    [
        ((0, 0), (0, 0), 0),
        ((0, 0), (0, 180), math.pi),
        ((90, 0), (-90, 0), math.pi),
        ((90, 5), (90, -170), 0),
        ((0, 179), (0, -179), math.radians(2)),
    ],
)
def test_distances_reach_over_poles_and_the_date_line(a, b, radians):
    assert distance(a, b) == pytest.approx(radians, abs=1e-12)


@given(points, points)
def test_a_distance_is_symmetric_and_at_most_half_around(a, b):
    assert distance(a, b) == pytest.approx(distance(b, a), abs=1e-9)
    assert 0 <= distance(a, b) <= math.pi


@pytest.mark.parametrize(
    ("point", "inside"),
    [
        ((5, 5), True),
        ((0, 0), True),
        ((10, 5), True),
        ((10.0001, 5), False),
        ((5, -0.0001), False),
    ],
)
def test_a_box_and_a_polygon_hold_their_borders(point, inside):
    assert in_box(point, (0, 0), (10, 10)) is inside
    assert in_polygon(point, SQUARE) is inside


def test_a_box_may_cross_the_date_line():
    assert in_box((0, 179.5), (-1, 179), (1, -179))
    assert in_box((0, -179.5), (-1, 179), (1, -179))
    assert not in_box((0, 0), (-1, 179), (1, -179))


@pytest.mark.parametrize(
    ("point", "inside"), [((2, 5), True), ((9, 5), False), ((5, 5), True), ((9, 9.5), True)]
)
def test_a_polygon_may_have_a_notch(point, inside):
    assert in_polygon(point, NOTCHED) is inside


grid = st.integers(-80, 80).map(lambda number: number / 4)


@given(st.tuples(grid, grid))
def test_the_direction_of_a_polygon_does_not_matter(point):
    assert in_polygon(point, NOTCHED) is in_polygon(point, NOTCHED[::-1])
