"""An address holds its share of a process's threads with slow statements, and no more."""

from __future__ import annotations

import pytest

from backend.kernel.errors import RateLimited
from backend.kernel.limits.slow_statements import (
    HOLD_TIME,
    SLOW_AFTER,
    AnswerClock,
    SlowStatements,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def pass_slow(self) -> None:
        self.now += SLOW_AFTER + 0.01


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gate(clock: Clock) -> SlowStatements:
    return SlowStatements(2, clock, clock)


def test_an_address_with_its_share_of_slow_statements_is_refused(gate, clock):
    entries = [gate.enter("a") for _ in range(2)]
    gate.check("a")
    clock.pass_slow()
    for attempt in (lambda: gate.check("a"), lambda: gate.enter("a")):
        with pytest.raises(RateLimited) as caught:
            attempt()
        assert caught.value.headers == {"Retry-After": "5"}
    gate.leave(gate.enter("b"))
    gate.leave(entries[0])
    gate.check("a")


def test_quick_statements_of_an_address_are_not_limited(gate, clock):
    for _ in range(100):
        entries = [gate.enter("a") for _ in range(10)]
        clock.now += 0.01
        for entry in entries:
            gate.leave(entry)


def test_the_latest_of_too_many_slow_statements_are_in_excess(gate, clock):
    entries = []
    for _ in range(4):
        entries.append(gate.enter("a"))
        clock.now += 0.001
    other = gate.enter("b")
    assert gate.excess() == []
    clock.pass_slow()
    assert gate.excess() == entries[2:]
    gate.leave(entries[0])
    assert gate.excess() == entries[3:]
    gate.leave(other)


def test_an_address_that_reached_its_share_is_held_to_it_for_a_while(gate, clock):
    entries = [gate.enter("a") for _ in range(3)]
    clock.pass_slow()
    for entry in entries:
        gate.leave(entry)
    entries = [gate.enter("a") for _ in range(2)]
    with pytest.raises(RateLimited):
        gate.enter("a")
    clock.now += HOLD_TIME + 1
    for entry in entries:
        gate.leave(entry)
    clock.now += HOLD_TIME + 1
    assert len([gate.enter("a") for _ in range(3)]) == 3


def test_what_a_request_has_spent_before_counts(gate):
    gate.enter("a", spent=1.0)
    gate.enter("a", spent=1.0)
    with pytest.raises(RateLimited):
        gate.enter("a")


def test_without_a_share_nothing_is_refused(clock):
    gate = SlowStatements(0, clock, clock)
    for _ in range(50):
        gate.enter("a", spent=10.0)
    assert gate.excess() == []


def test_the_time_in_which_postgresql_answers_nothing_does_not_count(clock):
    answers = AnswerClock(clock)
    gate = SlowStatements(2, clock, answers)
    entries = [gate.enter("a") for _ in range(4)]
    clock.now += 20 * SLOW_AFTER
    assert gate.excess() == []
    gate.check("a")
    for entry in entries:
        answers.note_answer()
        gate.leave(entry)
    for entry in [gate.enter("a") for _ in range(4)]:
        gate.leave(entry)


def test_a_statement_is_slow_while_others_are_answered(clock):
    answers = AnswerClock(clock)
    gate = SlowStatements(2, clock, answers)
    entries = [gate.enter("a") for _ in range(3)]
    until = clock.now + SLOW_AFTER + 0.05
    while clock.now < until:
        clock.now += 0.02
        answers.note_answer()
    assert gate.excess() == entries[2:]
