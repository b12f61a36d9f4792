"""Charts: well-formed, complete, and readable where lines end close together."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

from bench import chart

_SVG = "{http://www.w3.org/2000/svg}"
LINES = {
    "get <by> id": [(1e4, 0.31), (1e5, 0.32), (1e6, 0.33)],
    "range": [(1e4, 0.5), (1e5, 0.5), (1e6, 0.34)],
    "count": [(1e4, 1.0), (1e5, 10.0), (1e6, 99.0)],
}


def test_a_chart_has_its_titles_a_line_and_a_name_for_each_series():
    root = ElementTree.fromstring(chart.log_log("Costs & sizes", "objects", "ms", LINES))
    texts = [text.text for text in root.iter(f"{_SVG}text")]
    assert {"Costs & sizes", "objects", "ms", *LINES} <= {*texts}
    assert {"10⁴", "10⁵", "10⁶", "0.1", "1", "10", "100"} <= {*texts}
    assert len([*root.iter(f"{_SVG}polyline")]) == len(LINES)
    assert len([*root.iter(f"{_SVG}circle")]) == 9
    assert "prefers-color-scheme:dark" in (root.findtext(f"{_SVG}style") or "")


def test_values_lie_where_their_logarithms_say():
    root = ElementTree.fromstring(
        chart.log_log("t", "x", "y", {"a": [(1e4, 1.0), (1e5, 10.0), (1e6, 100.0)]})
    )
    points = next(root.iter(f"{_SVG}polyline")).attrib["points"].split()
    (x1, y1), (x2, y2), (x3, y3) = (tuple(map(float, point.split(","))) for point in points)
    assert x2 - x1 == x3 - x2 > 100
    assert abs((y1 - y2) - (y2 - y3)) < 0.2
    assert y1 > y3


def test_names_of_lines_that_end_close_together_dont_overlap():
    lines = {f"line {number}": [(1.0, 1.0), (10.0, 1.0 + number / 1000)] for number in range(7)}
    root = ElementTree.fromstring(chart.log_log("t", "x", "y", lines))
    names = [text for text in root.iter(f"{_SVG}text") if (text.text or "").startswith("line")]
    places = sorted(float(name.attrib["y"]) for name in names)
    assert all(below - above >= 14 for above, below in itertools.pairwise(places))
    assert places[0] > 0
    assert places[-1] < float(root.attrib["height"])
