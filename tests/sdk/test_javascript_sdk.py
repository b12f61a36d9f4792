"""The official JavaScript SDK works against the service; only address and keys are given."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from tests.other_process import OtherProcess
from tests.sdk.conftest import FOLDER

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("sdk")]
SOURCE = FOLDER / "application.js"
CHECKS = re.findall(r"^  async '(.+)'\(", SOURCE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def outcomes(node: str, other: OtherProcess) -> dict[str, Any]:
    """What each check of the application came to: an error, or None."""
    keys = ("test-app", "test-javascript-key", "test-master-key")
    done = subprocess.run(
        [node, SOURCE.name, other.url, *keys],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {line["name"]: line["error"] for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("check", CHECKS)
def test_the_sdk(check, outcomes):
    assert check in outcomes
    assert outcomes[check] is None, outcomes[check]
