"""The jobs of ``cloud`` are known to the test run as well, for tests that ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import pytest

from functions.runtime.registry import Job, registry


@pytest.fixture(scope="session")
def cloud_jobs() -> Mapping[str, Job]:
    with registry.temporarily():
        import_module("tests.functions.jobs.cloud")
        return {name: job for name, job in registry.jobs.items() if name.startswith("cloud_")}


@pytest.fixture
def known_jobs(own_registrations: None, cloud_jobs: Mapping[str, Job]) -> None:
    """They are registered while the test runs."""
    registry.jobs.update(cloud_jobs)
