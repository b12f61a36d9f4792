"""axe in a page of a browser: what keeps people with a screen reader or a keyboard out of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.npm import NodeMissing, node_with_packages

_PACKAGES = Path(__file__).parent / "axe_core"
_SERIOUS = ("serious", "critical")
_RUN = "() => axe.run(document, {resultTypes: ['violations']})"


def serious_findings(page: Page, within: str = "") -> list[str]:
    """Return the serious findings of axe about the page as it is now, or about a part of it."""
    try:
        node_with_packages(_PACKAGES)
    except NodeMissing as error:
        pytest.skip(str(error))
    # Inserted by the browser's own interface: the policy of the page allows no other script.
    page.evaluate((_PACKAGES / "node_modules/axe-core/axe.min.js").read_text())
    run = _RUN.replace("document", f"document.querySelector({within!r})") if within else _RUN
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in page.evaluate(run)["violations"]
        if violation["impact"] in _SERIOUS
        for node in violation["nodes"]
    ]
