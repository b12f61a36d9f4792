"""Percentiles of the fixed histogram, against those of the durations themselves."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel import latencies

_DURATIONS = st.floats(latencies.LIMITS[0], latencies.LIMITS[-1])


def histogram(durations: list[float]) -> list[int]:
    counts = [0] * latencies.GROUPS
    for seconds in durations:
        counts[latencies.group_of(seconds)] += 1
    return counts


@given(st.lists(_DURATIONS, min_size=1, max_size=60), st.sampled_from([0.01, 0.5, 0.95, 1.0]))
def test_a_percentile_is_as_exact_as_it_says(durations, share):
    exact = sorted(durations)[max(0, math.ceil(share * len(durations)) - 1)]
    estimate = latencies.percentile(histogram(durations), share)
    assert estimate is not None
    assert abs(estimate / exact - 1) <= latencies.ERROR + 1e-9


@pytest.mark.parametrize(
    ("durations", "expected"),
    [([], None), ([0.0], latencies.LIMITS[0]), ([3600.0], latencies.LIMITS[-1])],
)
def test_what_is_outside_of_the_groups(durations, expected):
    assert latencies.percentile(histogram(durations), 0.95) == expected
