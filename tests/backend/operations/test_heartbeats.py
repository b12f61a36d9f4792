"""Heartbeats in shared memory, as a supervisor reads them."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.process.liveness import Signs


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_age_counts_from_the_last_heartbeat() -> None:
    clock = Clock()
    signs = Signs(2, clock)
    assert (signs.age(0), signs.age(1)) == (0, 0)
    signs.leave(1)
    clock.now += 5
    assert (signs.age(0), signs.age(1)) == (0, 5)
    signs.leave(1)
    assert signs.age(1) == 0


@given(st.lists(st.sampled_from(["leave", "clear", "reset"])))
def test_a_reset_at_any_moment_leaves_a_paused_process_paused(steps: list[str]) -> None:
    """The supervisor may be interrupted anywhere in it."""
    clock = Clock()
    signs = Signs(1, clock)
    last_heartbeat: float | None = None
    last_reset = 0.0
    for step in steps:
        clock.now += 7
        if step == "reset":
            signs.reset()
            last_reset = clock.now
        elif step == "leave":
            signs.leave(0)
            last_heartbeat = clock.now
        else:
            signs.clear(0)
            last_heartbeat = None
        clock.now += 7
        expected = 0 if last_heartbeat is None else clock.now - max(last_heartbeat, last_reset)
        assert signs.age(0) == expected


def test_a_process_that_says_it_hangs_counts_as_silent_until_its_next_heartbeat() -> None:
    signs = Signs(3)
    signs.leave(0)
    signs.hang(1)
    assert signs.is_hanging()
    assert signs.age(1) == inf
    assert signs.age(0) < inf
    signs.leave(1)
    assert not signs.is_hanging()
    signs.hang(1)
    signs.clear(1)
    assert not signs.is_hanging()
    assert signs.age(1) == 0


def test_ended_threads_are_counted_across_restarts() -> None:
    signs = Signs(2)
    signs.count_ended_thread(0)
    signs.clear(0)
    signs.count_ended_thread(0)
    signs.count_ended_thread(1)
    assert signs.ended_threads() == 3
