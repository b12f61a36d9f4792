"""Pages checked by axe, whose findings of the impact "serious" or "critical" fail a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.npm import NodeMissing, NpmFailed, node_with_packages

_FOLDER = Path(__file__).parent / "axe"
_GRAVE = ("serious", "critical")


def axe_script() -> str:
    """Return axe's script, installed as its lock file says."""
    try:
        node_with_packages(_FOLDER, "--ignore-scripts")
    except NodeMissing as error:
        pytest.skip(f"axe: {error}")
    except NpmFailed as error:
        pytest.fail(str(error), pytrace=False)
    return (_FOLDER / "node_modules" / "axe-core" / "axe.min.js").read_text()


def check_accessible(page: Page, within: str = "#content") -> None:
    """Check a part of the page, whose context has ``bypass_csp``."""
    page.evaluate(axe_script())
    results: Any = page.evaluate("within => axe.run(within)", within)
    grave = [
        (found["id"], found["nodes"][0]["html"][:200], found["nodes"][0]["failureSummary"])
        for found in results["violations"]
        if found["impact"] in _GRAVE
    ]
    assert grave == []
