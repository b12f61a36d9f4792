"""How long the queries of one network may take while others wait."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from realtime.core.matching_time import BURST, RATE, MatchingTime


def test_a_network_has_its_burst_and_gets_time_back() -> None:
    time = MatchingTime()
    time.spend(["a"], BURST / 2, 100.0)
    assert not time.exhausted_networks(100.0)
    time.spend(["a"], BURST / 2, 100.0)
    assert set(time.exhausted_networks(100.0)) == {"a"}
    assert not time.exhausted_networks(100.0 + 0.1)


def test_the_time_of_a_shared_query_is_divided() -> None:
    time = MatchingTime()
    time.spend(["a", "b"], BURST, 100.0)
    assert not time.exhausted_networks(100.0)
    time.spend(["a", "b"], BURST, 100.0)
    assert set(time.exhausted_networks(100.0)) == {"a", "b"}


def test_a_debt_is_bounded() -> None:
    time = MatchingTime()
    time.spend(["a"], 1000.0, 100.0)
    assert set(time.exhausted_networks(100.0 + BURST / RATE - 0.1)) == {"a"}
    assert not time.exhausted_networks(100.0 + BURST / RATE + 0.1)


def test_networks_with_their_full_time_take_no_memory() -> None:
    time = MatchingTime()
    for number in range(5_000):
        time.spend([str(number)], 0.001, float(number))
    assert len(time._left) <= 1_001


@given(st.lists(st.tuples(st.floats(0, 0.2), st.floats(0, 2)), max_size=60))
def test_no_network_takes_more_than_its_rate_and_one_burst(matches) -> None:
    """The last query that starts within the time left may exceed it."""
    time, now, total, longest = MatchingTime(), 0.0, 0.0, 0.0
    for seconds, pause in matches:
        now += pause
        if "a" not in time.exhausted_networks(now):
            time.spend(["a"], seconds, now)
            total, longest = total + seconds, max(longest, seconds)
    assert total <= BURST + RATE * now + longest + 1e-6
