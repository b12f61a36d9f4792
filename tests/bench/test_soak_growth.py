"""What a soak fails for: its rule for growth, failures and its rate."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bench.soak import growth

WEB = "anonymous memory, web"


def samples(
    value: Callable[[float], float], minutes: int = 30, name: str = WEB, rate: float = 100.0
) -> list[dict[str, float]]:
    """A sample a minute, of a figure that depends on the minute."""
    return [
        {growth.MINUTE: float(minute), name: value(minute), "requests/s": rate}
        for minute in range(1, minutes + 1)
    ]


@pytest.mark.parametrize("minutes", [15, 30, 120])
@pytest.mark.parametrize("size", [10.0, 240.0, 1_700.0])
def test_a_leak_of_a_mebibyte_a_minute_is_growth(minutes: int, size: float):
    noise = random.Random(7)
    leaking = samples(lambda minute: size + minute + noise.uniform(-1, 1), minutes)
    assert growth.growing(leaking) == [WEB]


def test_four_percent_of_growth_are_growth():
    assert growth.growing(samples(lambda minute: 160 + 0.04 * 160 * minute / 20)) == [WEB]


def test_a_leak_that_single_low_samples_interrupt_is_growth():
    leaking = samples(lambda minute: 10.0 if minute % 7 == 0 else 100 + minute)
    assert growth.growing(leaking) == [WEB]


@pytest.mark.parametrize(
    "value",
    [
        lambda minute: 240.0,
        lambda minute: 240.0 - minute,
        lambda minute: 240.0 + 20 * (minute % 9 == 0),
        lambda minute: 240.0 + 20 * (minute == 30),
        lambda minute: 240.0 + 5 * min(minute, 10),
        lambda minute: 240.0 + 0.2 * minute,
        lambda minute: 240.0 + minute % 2,
    ],
    ids=["flat", "falling", "spikes", "last", "warm-up", "below the limit", "alternating"],
)
def test_what_is_flat_is_no_growth(value: Callable[[float], float]):
    assert growth.growing(samples(value)) == []


def test_growth_is_that_of_the_last_two_thirds_a_minute():
    points = [(float(minute), 100.0 + 2 * minute) for minute in range(1, 31)]
    assert growth.growth(points) == growth.Growth(per_minute=2.0, rise=38.0)


def test_a_figure_that_begins_late_grows_from_zero():
    late = samples(lambda minute: float(minute))
    for sample in late[:15]:
        del sample[WEB]
    assert growth.growing(late) == [WEB]


@pytest.mark.parametrize(
    "name", ["PSS, web", "open files, PostgreSQL", "open files, all processes", "requests/s"]
)
def test_what_moves_without_a_leak_is_shown_with_its_reason(name: str):
    growing = samples(lambda minute: 10.0 * minute, name=name)
    assert growth.growing(growing) == []
    text = growth.table(growing)
    reason = growth.NOT_JUDGED[growth.reason_not_judged(name) or ""]
    assert f"| {name} |" in text
    assert reason in text


def test_the_table_has_the_verdicts_and_the_rule():
    text = growth.table(samples(lambda minute: 100.0 + minute))
    assert f"| {WEB} | 106 | 116 | 126 | +1.00 | **yes** |" in text
    assert growth.RULE in text
    assert "| no |" in growth.table(samples(lambda minute: 100.0))


def test_a_short_soak_judges_no_growth_but_everything_else():
    leaking = samples(lambda minute: 10.0 * minute, minutes=6)
    assert growth.problems(leaking, 100, 0, 0, 0) == []
    assert "too short" in growth.table(leaking)
    assert growth.problems(leaking, 100, 1, 0, 0) == ["1 requests failed"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((100, 3, 0, 0), "3 requests failed"),
        ((100, 0, 3, 0), "3 connections of sockets failed"),
        ((100, 0, 0, 3), "3 processes ended and were restarted"),
        ((106, 0, 0, 0), "100 requests/s are less than 95% of the target, 106"),
    ],
    ids=["requests", "sockets", "restarts", "rate"],
)
def test_failures_and_a_low_rate_are_problems(arguments: tuple[int, int, int, int], problem: str):
    assert growth.problems(samples(lambda minute: 1.0), *arguments) == [problem]


def test_a_rate_near_the_target_and_flat_figures_are_no_problem():
    assert growth.problems(samples(lambda minute: 1.0), 105, 0, 0, 0) == []


def test_growth_is_a_problem():
    leaking = samples(lambda minute: 100.0 + minute)
    assert growth.problems(leaking, 100, 0, 0, 0) == [f"{WEB} grows"]
