"""Fixtures of the faults: an installation that can be harmed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.chain.faults.installation import Installation


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    """Engines, a web process, and no others at first."""
    from tests.chain.faults.installation import installed

    with installed() as made:
        yield made
