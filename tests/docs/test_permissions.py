"""What docs/permissions.md claims is checked by the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_the_page_names_is_there():
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/permissions.md").read_text()))
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.M)
    }
    assert len(named) > 40
    assert named <= there
