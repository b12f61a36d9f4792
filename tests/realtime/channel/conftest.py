"""Fixtures: another chain, and the sockets of realtime processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.realtime.livequery.committed import Aside

if TYPE_CHECKING:
    from tests.realtime.channel.chains import Chain
    from tests.realtime.channel.channel import ProcessHarness


@pytest.fixture
def other(db: None, aside: Aside) -> Chain:
    """Another network."""
    from tests.realtime.channel.chains import Chain

    return Chain(aside)


def _harness() -> Iterator[ProcessHarness]:
    from tests.realtime.channel.channel import ProcessHarness

    made = ProcessHarness()
    yield made
    made.stop()


@pytest.fixture
def harness(db: None) -> Iterator[ProcessHarness]:
    """A realtime process, as far as sockets see it."""
    yield from _harness()


@pytest.fixture
def second(db: None) -> Iterator[ProcessHarness]:
    """Another realtime process on the same database."""
    yield from _harness()
