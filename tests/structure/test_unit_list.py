"""tests/unit.txt lists tests that need no database."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTED = [
    line for line in (ROOT / "tests" / "unit.txt").read_text().splitlines() if line[:1] != "#"
]
NEEDS_ENGINES = re.compile(r"django_db|\bchromium\b|tests\.callers")


@pytest.mark.parametrize("path", LISTED)
def test_a_listed_path_has_tests_that_need_no_database(path):
    """pytest-django would skip the others silently where Django isn't set up."""
    place = ROOT / path
    modules = [place] if place.suffix == ".py" else sorted(place.rglob("test_*.py"))
    assert modules
    assert [
        module.name
        for module in modules
        if module != Path(__file__) and NEEDS_ENGINES.search(module.read_text())
    ] == []
