"""Numbers of log records over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from backend.logs.chart import CATEGORIES, category, empty_chart
from backend.logs.search import Entry, milliseconds

NOON = datetime(2026, 11, 28, 12, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "step"),
    [(0, 1), (60, 1), (900, 15), (3600, 60), (6 * 3600, 300), (86_400, 1800), (7 * 86_400, 10_800)],
)
def test_a_period_has_at_most_about_seventy_bars_of_round_length(seconds: int, step: int) -> None:
    chart = empty_chart(NOON - timedelta(seconds=seconds), NOON)
    assert chart.step == step * 1000
    assert chart.start % chart.step == 0
    assert 1 <= len(chart.bars) <= 77
    assert chart.start + len(chart.bars) * chart.step > milliseconds(NOON)


def test_any_period_is_bounded() -> None:
    chart = empty_chart(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
    assert len(chart.bars) <= 750
    chart.add(Entry("9" * 20 + "-0", {}))
    assert chart.total == {"info": 1}


def test_records_are_counted_in_the_bar_of_their_time() -> None:
    chart = empty_chart(NOON - timedelta(hours=1), NOON)
    at = milliseconds(NOON)
    for place, fields in (
        (at, {"logger": "request", "status": 404}),
        (at, {"level": "critical"}),
        (at - 60_000, {"logger": "request", "status": 200}),
    ):
        chart.add(Entry(f"{place}-0", fields))
    assert chart.bars[-1] == {"4xx": 1, "error": 1}
    assert chart.bars[-2] == {"2xx": 1}
    assert chart.total == {"2xx": 1, "4xx": 1, "error": 1}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"logger": "request", "status": 304}, "3xx"),
        ({"logger": "request", "status": 503, "level": "warning"}, "5xx"),
        ({"logger": "request", "status": 999}, "info"),
        ({"logger": "jobs", "status": "4xKq", "level": "warning"}, "warning"),
        ({"level": []}, "info"),
        ({}, "info"),
    ],
)
def test_every_record_has_a_category(fields: dict[str, object], expected: str) -> None:
    assert category(fields) == expected
    assert expected in CATEGORIES
