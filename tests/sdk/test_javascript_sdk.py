"""The official JavaScript SDK works against the service; only address and keys are given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functions.jobs.processes import Processes
from tests.other_process import OtherProcess
from tests.sdk.applications import FOLDER, KEYS, outcomes_of

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
        (source, name): error
        for source in SOURCES
        for name, error in outcomes_of(node, source, other.url, *KEYS)
    }


@pytest.mark.parametrize(("source", "check"), CHECKS)
def test_the_sdk(source, check, outcomes):
    assert (source, check) in outcomes
    assert outcomes[source, check] is None, outcomes[source, check]
