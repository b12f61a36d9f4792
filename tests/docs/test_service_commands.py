"""The commands of config.md, idempotency.md and features.md do what these pages say."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import KEYS

DOCS = Path(__file__).resolve().parents[2] / "docs"

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db,
    pytest.mark.xdist_group("web"),
]


def printed(page: str, url: str) -> str:
    """What the shell commands of a page print, pasted one after the other."""
    text = (DOCS / page).read_text()
    script = "\n".join(re.findall(r"```sh\n(.+?)```", text, re.DOTALL))
    done = subprocess.run(
        ["bash", "-eu", "-c", script],
        env={"PATH": os.environ["PATH"], "api": url, **KEYS},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_config_is_saved_and_read_and_an_event_reported(other):
    expected = '{"result":true}{"params":{"welcome":"hello"},"masterKeyOnly":{}}{}'
    assert printed("config.md", other.url) == expected


def test_a_note_is_made_once(other):
    text = printed("idempotency.md", other.url)
    assert text.count("201 Created") == 2
    assert text.lower().count("idempotent-replayed: true") == 1
    assert len(set(re.findall(r'\{"objectId":.*?\}', text))) == 1


def test_features_are_requested(other):
    legacy = '{"result":["objects","queries","users","files","functions","wallets"]}'
    assert printed("features.md", other.url) == '{"result":{"hasAccess":false}}' + legacy
