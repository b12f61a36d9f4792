"""The chart of the log as SVG that needs no script: bars that lead to their period."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from backend.logs.chart import CATEGORIES, Chart

HEIGHT: Final = 100
"""Of the tallest bar, in units of the picture."""
WIDTH: Final = 10
"""Of one bar and the gap after it."""
_GAP: Final = 2
_LEAST: Final = 3.0
"""So that one error among a thousand requests is seen."""
_NAMES: Final = {
    "": ("record", "records"),
    "info": ("other record", "other records"),
    "warning": ("warning", "warnings"),
    "error": ("error", "errors"),
}
_FILTERS: Final[Mapping[str, dict[str, str]]] = {
    **{kind: {"status": kind} for kind in ("2xx", "3xx", "4xx", "5xx")},
    **{kind: {"level": kind} for kind in ("warning", "error")},
    "info": {},
}


@dataclass(frozen=True)
class Part:
    """A rectangle: the records of one category in one bar."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True)
class Bar:
    """One bar, the period that it counts, and the address of its records."""

    x: int
    start: str
    end: str
    title: str
    parts: list[Part]
    address: str


@dataclass(frozen=True)
class Picture:
    """What the template draws."""

    bars: list[Bar]
    width: int
    bar_width: int
    height: int
    start: str
    end: str
    most: str
    """Records in the tallest bar."""
    number: str
    totals: list[tuple[str, str, str]]
    """Category, the number of its records in words, and their address."""
    missing: int
    """The width of the part that wasn't counted."""
    counted_from: str
    earlier: str
    """The address of the page that counts what is missing."""


def draw(chart: Chart, address: Callable[..., str]) -> Picture:
    """Return the picture of a chart. ``address`` gives that of the page with other parameters."""
    most = max((sum(bar.values()) for bar in chart.bars), default=0)
    bars = []
    for place, counts in enumerate(chart.bars):
        start = chart.start + place * chart.step
        begin, end = _moment(start), _moment(start + chart.step)
        if not counts:
            continue
        listed = ", ".join(_in_words(kind, counts[kind]) for kind in CATEGORIES if kind in counts)
        parts = _parts(counts, most)
        link = address(**{"from": begin, "until": end, "period": ""})
        bars.append(Bar(place * WIDTH, begin, end, listed, parts, link))
    total = chart.total
    missing, start_of_all = 0, _moment(chart.start)
    counted_from = "" if chart.counted_from is None else _moment(chart.counted_from)
    if chart.counted_from is not None:
        counted = (chart.counted_from - chart.start) / chart.step
        missing = max(1, min(len(chart.bars), round(counted))) * WIDTH
    return Picture(
        bars,
        len(chart.bars) * WIDTH,
        WIDTH - _GAP,
        HEIGHT,
        start_of_all,
        _moment(chart.start + len(chart.bars) * chart.step),
        f"{most:,}",
        _in_words("", sum(total.values())),
        [
            (kind, _in_words(kind, total[kind]), address(**_FILTERS[kind]))
            for kind in CATEGORIES
            if kind in total
        ],
        missing,
        counted_from,
        address(**{"from": start_of_all, "until": counted_from, "period": ""}),
    )


def _parts(counts: dict[str, int], most: int) -> list[Part]:
    """Return the rectangles of a bar from the bottom up, none too small to be seen."""
    heights = {
        kind: max(_LEAST, counts[kind] / most * HEIGHT) for kind in CATEGORIES if kind in counts
    }
    excess = sum(heights.values()) - HEIGHT
    if excess > 0:
        heights[max(heights, key=heights.__getitem__)] -= excess
    parts, top = [], float(HEIGHT)
    for kind, height in heights.items():
        top -= height
        parts.append(Part(kind, round(top, 1), round(height, 1)))
    return parts


def _in_words(kind: str, number: int) -> str:
    singular, plural = _NAMES.get(kind, (kind, kind))
    return f"{number:,} {singular if number == 1 else plural}"


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat().replace("+00:00", "Z")
