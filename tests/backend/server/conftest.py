"""A server for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backend.server.running import Running, running
from tests.callers import emptied as emptied


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    """A server with small limits and two threads."""
    with running(tmp_path) as started:
        yield started
