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


def test_bars_have_names_and_values_and_begin_at_one():
    root = ElementTree.fromstring(
        chart.bars("Ratios", {"get <by> id": (4.0, 3.0), "scan": (0.5, 2.0), "same": (1.0, 1.0)})
    )
    texts = [text.text for text in root.iter(f"{_SVG}text")]
    assert {"Ratios", "get <by> id", "4.00", "0.50", "0.1", "1", "10"} <= {*texts}
    page, more, less, same = root.iter(f"{_SVG}rect")
    assert float(page.attrib["height"]) > 3 * 30
    begin, width = (float(more.attrib[name]) for name in ("x", "width"))
    assert abs(float(less.attrib["x"]) + float(less.attrib["width"]) - begin) < 0.2
    assert abs(width / float(less.attrib["width"]) - 2) < 0.01
    assert float(same.attrib["width"]) == 1


def test_a_bar_that_misses_its_aim_has_another_colour_and_a_mark_beyond_it():
    root = ElementTree.fromstring(chart.bars("Ratios", {"a": (4.0, 3.0), "b": (2.0, 3.0)}))
    _, met, missed = root.iter(f"{_SVG}rect")
    assert met.attrib["class"] != missed.attrib["class"]
    marks = [
        float(item.attrib["x1"]) for item in root.iter(f"{_SVG}line") if item.get("class") == "aim"
    ]
    assert marks[0] == marks[1] > float(missed.attrib["x"]) + float(missed.attrib["width"])
    assert marks[0] < float(met.attrib["x"]) + float(met.attrib["width"])
