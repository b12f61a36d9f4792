"""A provider that can't be compared, or is slow, is left out; a moment's failure is forgiven."""

from __future__ import annotations

from chain.core import comparisons
from chain.core.comparisons import Comparisons


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_failures_of_a_moment_say_nothing() -> None:
    clock = Clock()
    compared = Comparisons(clock)
    assert [compared.failed() for _ in range(10)] == [None] * 10
    compared.succeeded(0.1)
    clock.now += 60
    assert [compared.failed() for _ in range(2)] == [None, None]


def test_failures_that_last_leave_it_out_for_longer_each_time() -> None:
    clock = Clock()
    compared = Comparisons(clock)
    compared.failed()
    compared.failed()
    clock.now += comparisons.SHORTEST
    pauses = []
    for _ in range(6):
        pauses.append(compared.failed())
        clock.now += 600
    assert pauses == [60, 120, 240, 480, 600, 600]
    compared.succeeded(0.1)
    assert compared.failed() is None


def test_slow_comparisons_leave_it_out_for_a_minute_each_time_until_one_is_quick() -> None:
    compared = Comparisons(Clock())
    assert [compared.succeeded(3.0) for _ in range(4)] == [None, None, 60, 60]
    assert compared.succeeded(0.5) is None
    assert compared.succeeded(3.0) is None
