"""Charts as SVG, written without a library; readable on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 800, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 150, 44, 52
_LABEL_HEIGHT = 15
_BAR, _BAR_LEFT, _BAR_RIGHT = 30, 290, 70
_MULTIPLES = (0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 20, 50, 100)
# Okabe and Ito's colours, which colour-blind readers can tell apart; on dark pages lighter ones.
_LIGHT = ("#0072b2", "#d55e00", "#008a63", "#a8447f", "#8a6d00", "#2f8ac4", "#555555")
_DARK = ("#56b4e9", "#ff8c42", "#2fd6a3", "#e79ac6", "#e6c229", "#9ad0f5", "#c0c0c0")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "", "7 3", "2 3")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def log_log(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """A chart with two logarithmic axes, a line for each series, named at its end.

    At most seven series, all values above zero.
    """
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    x_axis = _Axis(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT)
    y_axis = _Axis(min(ys), max(ys), _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        f' width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<style>{_style(len(series))}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{_HEIGHT}"/>',
        _text(_LEFT, 26, title, "title"),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, x_label, "middle"),
        f'<text class="middle" transform="translate(20 {(_TOP + _HEIGHT - _BOTTOM) / 2:.0f})'
        f' rotate(-90)">{escape(y_label)}</text>',
    ]
    for power in x_axis.powers:
        x = x_axis.place(10**power)
        parts.append(_rule(x, _TOP, x, _HEIGHT - _BOTTOM))
        parts.append(_text(x, _HEIGHT - _BOTTOM + 18, _power(power), "middle"))
    for power in y_axis.powers:
        y = y_axis.place(10**power)
        parts.append(_rule(_LEFT, y, _WIDTH - _RIGHT, y))
        parts.append(_text(_LEFT - 8, y + 4, f"{10.0**power:g}", "end"))
    ends = {name: y_axis.place(points[-1][1]) for name, points in series.items()}
    labels = _apart(ends, _TOP, _HEIGHT - _BOTTOM)
    for number, (name, points) in enumerate(series.items()):
        places = [(x_axis.place(x), y_axis.place(y)) for x, y in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline class="line s{number}" points="{line}"/>')
        parts += [f'<circle class="s{number}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
        x, y = places[-1]
        parts.append(
            f'<path class="lead s{number}" d="M{x + 4:.1f} {y:.1f}'
            f'L{_WIDTH - _RIGHT + 18} {labels[name]:.1f}"/>'
        )
        parts.append(_text(_WIDTH - _RIGHT + 22, labels[name] + 4, name, f"name t{number}"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def bars(title: str, values: Mapping[str, tuple[float, float]]) -> str:
    """A chart with a bar for each name, from 1 on a logarithmic axis, and a mark at its aim.

    Values and aims are multiples above zero; bars of values below 1 go to the left.
    """
    height = _TOP + _BAR * len(values) + _BOTTOM
    numbers = [number for pair in values.values() for number in pair]
    axis = _Axis(min(1.0, *numbers), max(numbers), _BAR_LEFT, _WIDTH - _BAR_RIGHT)
    one = axis.place(1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}"'
        f' width="{_WIDTH}" height="{height}" role="img" aria-label="{escape(title)}">',
        f"<style>{_style(2)}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        _text(16, 26, title, "title"),
    ]
    for multiple in _MULTIPLES:
        if axis.start <= axis.place(multiple) <= axis.end:
            x = axis.place(multiple)
            parts.append(_rule(x, _TOP, x, height - _BOTTOM))
            parts.append(_text(x, height - _BOTTOM + 18, f"{multiple:g}", "middle"))
    for number, (name, (value, aim)) in enumerate(values.items()):
        y = _TOP + _BAR * number + _BAR / 2
        left, right = sorted((one, axis.place(value)))
        colour = 0 if value >= aim else 1
        parts.append(_text(_BAR_LEFT - 10, y + 4, name, "end"))
        parts.append(
            f'<rect class="s{colour}" x="{left:.1f}" y="{y - 8:.1f}"'
            f' width="{max(right - left, 1):.1f}" height="16"/>'
        )
        parts.append(_text(_WIDTH - _BAR_RIGHT + 10, y + 4, f"{value:.2f}", f"name t{colour}"))
        x = axis.place(aim)
        ends = f'y1="{y - 12:.1f}" y2="{y + 12:.1f}"'
        parts.append(f'<line class="aim" x1="{x:.1f}" x2="{x:.1f}" {ends}/>')
    parts.append(
        _text(16, height - 12, "The mark is what is aimed at; 1 is Parse Server.", "begin")
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Axis:
    """From whole powers of ten to places in the picture."""

    def __init__(self, least: float, most: float, start: float, end: float) -> None:
        first = math.floor(math.log10(least) + 1e-9)
        last = max(math.ceil(math.log10(most) - 1e-9), first + 1)
        self.powers = range(first, last + 1)
        self.start, self.end = start, end

    def place(self, value: float) -> float:
        first, last = self.powers[0], self.powers[-1]
        part = (math.log10(value) - first) / (last - first)
        return self.start + part * (self.end - self.start)


def _apart(places: Mapping[str, float], least: float, most: float) -> dict[str, float]:
    """Places for labels, near the given ones, that don't overlap."""
    names = sorted(places, key=places.__getitem__)
    found: dict[str, float] = {}
    above = least - _LABEL_HEIGHT
    for name in names:
        above = max(places[name], above + _LABEL_HEIGHT)
        found[name] = above
    below = most + _LABEL_HEIGHT
    for name in reversed(names):
        below = min(found[name], below - _LABEL_HEIGHT)
        found[name] = below
    return found


def _style(lines: int) -> str:
    def colours(palette: Sequence[str], text: str, page: str, rule: str) -> str:
        rules = [
            f".page{{fill:{page}}}text{{fill:{text}}}.rule{{stroke:{rule}}}.aim{{stroke:{text}}}",
            *(
                f".s{n}{{stroke:{palette[n]}}}circle.s{n},rect.s{n}{{fill:{palette[n]}}}"
                f".t{n}{{fill:{palette[n]}}}"
                for n in range(lines)
            ),
        ]
        return "".join(rules)

    return (
        "text{font:12px system-ui,sans-serif}.title{font-size:15px;font-weight:600}"
        ".middle{text-anchor:middle}.end{text-anchor:end}.name{font-weight:600}"
        ".aim{stroke-width:2}.line{fill:none;stroke-width:2}.lead{fill:none;stroke-width:1;opacity:.5}"
        + "".join(
            f".line.s{n}{{stroke-dasharray:{_DASHES[n]}}}" for n in range(lines) if _DASHES[n]
        )
        + colours(_LIGHT, "#333333", "#ffffff", "#dddddd")
        + f"@media(prefers-color-scheme:dark){{{colours(_DARK, '#dddddd', '#161b22', '#3a414b')}}}"
    )


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="rule" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _power(power: int) -> str:
    return f"10{str(power).translate(_SUPERSCRIPTS)}"
