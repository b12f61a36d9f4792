"""When a process that has ended is started again, and when that is reported."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.operations.processes.restarts import FAILING, PAUSES, WINDOW, Restarts


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_first_restart_is_at_once_and_later_ones_wait_longer() -> None:
    restarts = Restarts(Clock())
    assert [restarts.died() for _ in range(8)] == [*PAUSES, PAUSES[-1], PAUSES[-1]]
    assert restarts.total == 8


def test_five_ends_within_a_minute_are_failing_until_a_minute_has_passed() -> None:
    clock = Clock()
    restarts = Restarts(clock)
    for _ in range(FAILING):
        assert not restarts.is_failing
        restarts.died()
        clock.now += 1
    assert restarts.is_failing
    clock.now += WINDOW
    assert not restarts.is_failing
    assert restarts.died() == 0.0


def test_what_was_repaired_restarts() -> None:
    restarts = Restarts(Clock())
    for _ in range(FAILING):
        restarts.died()
    restarts.repaired()
    assert not restarts.is_failing
    assert restarts.died() == PAUSES[0]
    assert not restarts.is_failing
    assert restarts.total == FAILING + 1


@pytest.mark.parametrize("life", [0.0, 8.0, 10.0, 30.0])
def test_what_ends_some_seconds_after_each_start_keeps_its_state(life: float) -> None:
    """Its pauses grow with its deaths, so that fewer than ``FAILING`` lie within a window."""
    clock = Clock()
    restarts = Restarts(clock)
    states = []
    for _ in range(200):
        clock.now += life + restarts.died()
        states.append(restarts.is_failing)
    changes = sum(item != other for item, other in pairwise(states))
    assert changes == (0 if life == 30 else 1)
    clock.now += WINDOW
    assert not restarts.is_failing


def test_what_always_ends_at_once_stays_reported() -> None:
    """Also with the longest pauses between its starts."""
    clock = Clock()
    restarts = Restarts(clock)
    for _ in range(FAILING):
        clock.now += restarts.died()
    for _ in range(50):
        assert restarts.is_failing
        clock.now += restarts.died()


@given(st.lists(st.floats(0, 100), max_size=60))
def test_it_fails_from_five_ends_within_a_minute_on_to_a_minute_without_one(
    gaps: list[float],
) -> None:
    clock = Clock()
    restarts = Restarts(clock)
    ends: list[float] = []
    is_failing = False
    for gap in gaps:
        clock.now += gap
        is_failing &= any(end > clock.now - WINDOW for end in ends)
        assert restarts.is_failing == is_failing
        ends.append(clock.now)
        pause = restarts.died()
        recent = sum(end > clock.now - WINDOW for end in ends)
        is_failing |= recent >= FAILING
        assert restarts.is_failing == is_failing
        assert pause == PAUSES[min(recent, len(PAUSES)) - 1]
