"""Running a fuzz target: hypothesis chooses seeds, each of which stands for a hundred inputs.

Hypothesis takes about a millisecond for an example of its own, more than most parsers take. A
failure names the seed; ``Mutator(seed, corpus)`` makes the same inputs again.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FrameType
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from backend.kernel.errors import ServiceError
from tests.security.fuzz.mutation import Mutator

T = TypeVar("T")

EXAMPLES = pytest.mark.parametrize(
    "examples",
    [pytest.param(500, id="short"), pytest.param(30_000, id="long", marks=pytest.mark.slow)],
)
"""How many inputs a target gets: a few in every run, many with ``--all``. Each run has others."""
_BATCH = 100
_LONGEST = 100_000
_REMEMBERED = 2_000_000


def fuzz(
    target: Callable[[T], object],
    make: Callable[[Mutator], T],
    corpus: Sequence[Any],
    examples: int,
    *expected: type[Exception],
) -> None:
    """Give the target so many inputs. It may raise client errors, and what is ``expected``."""

    @settings(
        max_examples=examples // _BATCH,
        deadline=None,
        database=None,
        derandomize=False,  # as it would be where the variable CI is set
        # A smaller seed isn't a simpler input.
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(seed=st.integers(0, 2**62))
    def run(seed: int) -> None:
        mutator = Mutator(seed, corpus)
        for number in range(_BATCH):
            value = make(mutator)
            try:
                refusal = _refusal(target, value, expected)
                assert refusal is None or (refusal.status < 500 and refusal.message)
            except BaseException as error:
                error.add_note(f"input {number} of seed {seed}: {repr(value)[:2_000]}")
                raise

    run()


def _refusal(
    target: Callable[[T], object], value: T, expected: tuple[type[Exception], ...]
) -> ServiceError | None:
    """The error with which the target refuses an input, if it is one of a client."""
    try:
        target(value)
    except ServiceError as error:
        return error
    except expected:
        pass
    return None


def accepts(target: Callable[[T], object], inputs: Sequence[T]) -> None:
    """The inputs that others are made from are valid, so that what is near them is tested."""
    for value in inputs:
        target(value)


def check_work_is_proportional(
    target: Callable[[T], object],
    grown: Callable[[int], T],
    sizes: Sequence[int],
    *expected: type[Exception],
) -> None:
    """Each input, four times as large as the one before, takes at most five times as many steps.

    Steps are calls of functions, so the result doesn't depend on the machine.
    """
    steps = [_steps(target, grown(size), expected) for size in sizes]
    for smaller, larger in pairwise(steps):
        assert larger <= 5 * smaller + 500, steps


def _steps(target: Callable[[T], object], value: T, expected: tuple[type[Exception], ...]) -> int:
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        _refusal(target, value, expected)
    finally:
        sys.setprofile(before)
    return calls


def check_nothing_long_is_remembered(
    target: Callable[[T], object], containing: Callable[[str], T], *expected: type[Exception]
) -> None:
    """Long inputs, each different, leave no trace of their size in memory."""

    def feed(first: int, last: int) -> None:
        for number in range(first, last):
            _refusal(target, containing(f"{number:08}" * (_LONGEST // 8)), expected)

    feed(0, 5)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        feed(5, 105)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < _REMEMBERED, f"{grown:,} bytes are left of 100 inputs of {_LONGEST:,} bytes"
