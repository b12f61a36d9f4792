"""docs/threat-model.md and SECURITY.md name what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backend.settings.documentation import DEFAULTS
from tests.docs.test_configuration import names_read

ROOT = Path(__file__).resolve().parents[2]
MODEL = (ROOT / "docs" / "threat-model.md").read_text()
POLICY = (ROOT / "SECURITY.md").read_text()


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:tests|objects|backend|realtime)/[\w/.]+)`", MODEL)))
)
def test_each_file_that_holds_a_promise_is_there(path):
    assert (ROOT / path).exists()


def test_each_setting_that_holds_a_promise_is_there():
    named = set(re.findall(r"`([A-Z][A-Z_]{3,})`", MODEL))
    assert named
    assert named - names_read() - set(DEFAULTS) == set()


def test_every_promise_names_what_holds_it():
    body = MODEL.partition("## What the defaults protect")[2].partition("## What is not protected")[
        0
    ]
    rows = [line for line in body.splitlines() if line.startswith("| ") and "held by" not in line]
    assert len(rows) > 20
    assert all("`" in row.rsplit("|", 2)[1] for row in rows)


@pytest.mark.parametrize("text", [MODEL, POLICY])
def test_links_lead_to_files(text):
    base = ROOT / "docs" if text is MODEL else ROOT
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (base / target).resolve().exists(), target


def test_a_vulnerability_is_reported_in_private_and_to_no_address_that_may_not_exist():
    assert "Report a vulnerability" in POLICY
    assert "@" not in POLICY
