"""What the pages on rights claim is checked by the tests that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("page", "at_least"), [("permissions", 40), ("admin-operations", 8), ("realtime", 12)]
)
def test_every_test_that_the_page_names_is_there(page, at_least):
    named = set(re.findall(r"`(test_\w+)`", (ROOT / f"docs/{page}.md").read_text()))
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.M)
    }
    assert len(named) > at_least
    assert named <= there
