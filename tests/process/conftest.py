"""Every test here starts real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.embedded.folder import DataFolder, temporary_folder


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
