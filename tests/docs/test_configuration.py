"""docs/configuration.md tells of every setting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backend.settings.conf import DEFAULTS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "configuration.md").read_text()
# environment.text("NAME", …) and its siblings, wherever the service reads a setting.
READ = re.compile(
    r'environment\.(?:text|whole|flag|choice|words|address|required|binds?)\(\s*"([A-Z_]+)"'
)


def names_read() -> set[str]:
    found = set(DEFAULTS)
    for module in (ROOT / "backend").rglob("*.py"):
        found.update(READ.findall(module.read_text()))
    return found


@pytest.mark.parametrize("name", sorted(names_read()))
def test_a_setting_is_documented(name):
    assert f"`{name}`" in TEXT


def test_nothing_is_documented_that_is_not_there():
    described = set(re.findall(r"`([A-Z][A-Z_]{3,})`", TEXT)) - {"NAME_FILE", "NAME", "INFO"}
    # ``environment.env_file`` reads the latter.
    assert described - names_read() - {"MASTER_KEY", "ENV_FILE"} == set()
