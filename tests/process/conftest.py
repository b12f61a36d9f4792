"""Every test here starts real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.embedded.folder import DataFolder, temporary_folder
from tests.process.service import Service


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.process)


@pytest.fixture
def folder() -> Iterator[DataFolder]:
    """A data folder that is gone, with whatever engines put elsewhere, after the test."""
    with temporary_folder() as made:
        yield made


@pytest.fixture
def start(folder: DataFolder) -> Iterator[Callable[..., Service]]:
    """Starts the service with the data folder; it is stopped after the test, if it still runs."""
    started: list[Service] = []

    def start(**settings: object) -> Service:
        started.append(Service(folder.path, **settings))
        return started[-1]

    yield start
    for service in started:
        service.stop()
