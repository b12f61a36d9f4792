"""A client for Python, ``parse_rest``, installed once at a pinned version."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.other_process import OtherProcess, other_process
from tests.sdk.applications import FOLDER, outcomes_of

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("emptied"),
    pytest.mark.xdist_group("sdk"),
]
SOURCE = FOLDER / "python_client.py"
MODULES = FOLDER / ".python_modules"
REQUIREMENTS = FOLDER / "python_requirements.txt"
CHECKS = re.findall(r"^            (\w+),$", SOURCE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def service(django_db_setup: None, django_db_blocker: Any) -> Iterator[OtherProcess]:
    with django_db_blocker.unblock(), other_process(ALLOW_CLIENT_CLASS_CREATION="on") as web:
        yield web


@pytest.fixture(scope="module")
def outcomes(service: OtherProcess) -> dict[str, Any]:
    """What each check came to: an error, or None."""
    _install()
    keys = ("test-app", "test-rest-key", "test-master-key")
    environment = {"PYTHONPATH": str(MODULES), "PARSE_API_ROOT": service.url}
    return dict(outcomes_of(sys.executable, SOURCE.name, *keys, environment=environment))


def _install() -> None:
    installed = MODULES / REQUIREMENTS.name
    if installed.exists() and installed.read_bytes() == REQUIREMENTS.read_bytes():
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    done = subprocess.run(
        [*command, "--target", MODULES, "--requirement", REQUIREMENTS],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"parse_rest can't be installed here: {done.stderr[-500:]}")
    installed.write_bytes(REQUIREMENTS.read_bytes())


@pytest.mark.parametrize("check", CHECKS)
def test_the_python_client(check, outcomes):
    assert outcomes[check] is None, outcomes[check]
