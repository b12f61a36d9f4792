"""Every test here starts real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.instance.folder import DataFolder, temporary_folder
from tests.backend.operations.load_outcomes import Table
from tests.backend.operations.service import Service, services


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.process)


@pytest.fixture
def folder() -> Iterator[DataFolder]:
    """A data folder that is removed after the test, with what engines put elsewhere."""
    with temporary_folder() as made:
        yield made


@pytest.fixture
def start(folder: DataFolder) -> Iterator[Callable[..., Service]]:
    """Starts the service with the data folder; it is stopped after the test, if it still runs."""
    with services(folder) as start:
        yield start


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    """The table of the module's tests, which is printed after the last (with ``-s``)."""
    table = Table()
    yield table
    print(f"\n\n{table}")
