"""The official JavaScript SDK works against the service; only address and keys are given."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functions.jobs.processes import Processes
from tests.other_process import OtherProcess
from tests.sdk.conftest import FOLDER

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("emptied"),
    pytest.mark.xdist_group("sdk"),
]
SOURCES = (
    "application.js",
    "cloud.js",
    "hooks.js",
    "jobs.js",
    "passkeys.js",
    "people.js",
    "service.js",
    "sharing.js",
)
CHECKS = [
    (source, check)
    for source in SOURCES
    for check in re.findall(r"^  async '(.+)'\(", (FOLDER / source).read_text(), re.MULTILINE)
]


@pytest.fixture(scope="module")
def jobs_worker(other: OtherProcess) -> Iterator[None]:
    """The process that runs jobs."""
    processes = Processes("tests.cloud")
    processes.start("jobs")
    yield
    processes.stop()


@pytest.fixture(scope="module")
def outcomes(node: str, other: OtherProcess, jobs_worker: None) -> dict[tuple[str, str], Any]:
    """What each check of each application came to: an error, or None."""
    return {
        (source, name): error for source in SOURCES for name, error in run(node, other.url, source)
    }


def run(node: str, url: str, source: str) -> list[tuple[str, Any]]:
    keys = ("test-app", "test-javascript-key", "test-master-key")
    done = subprocess.run(
        [node, source, url, *keys],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [(line["name"], line["error"]) for line in lines]


@pytest.mark.parametrize(("source", "check"), CHECKS)
def test_the_sdk(source, check, outcomes):
    assert (source, check) in outcomes
    assert outcomes[source, check] is None, outcomes[source, check]
