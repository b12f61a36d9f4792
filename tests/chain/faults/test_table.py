"""Each fault of the table in README.md has its tests."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def test_the_tests_that_the_table_names_are_there() -> None:
    rows = re.findall(r"^\| (F\d+) \|.*\| ([^|]+) \|$", (HERE / "README.md").read_text(), re.M)
    assert [number for number, _ in rows] == [f"F{number}" for number in range(1, 23)]
    for _, tests in rows:
        for name in re.findall(r"`([^`]+\.py)`", tests):
            place = ROOT / name if name.startswith("tests/") else HERE.parent / name
            assert place.is_file(), name
