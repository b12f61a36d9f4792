"""Fixtures: another chain, and the sockets of realtime processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.realtime.livequery.committed import Aside

if TYPE_CHECKING:
    from tests.realtime.channel.chains import Chain
    from tests.realtime.channel.channel import House


@pytest.fixture
def other(db: None, aside: Aside) -> Chain:
    """Another network."""
    from tests.realtime.channel.chains import Chain

    return Chain(aside)


def _house() -> Iterator[House]:
    from tests.realtime.channel.channel import House

    made = House()
    yield made
    made.stop()


@pytest.fixture
def house(db: None) -> Iterator[House]:
    """A realtime process, as far as sockets see it."""
    yield from _house()


@pytest.fixture
def second(db: None) -> Iterator[House]:
    """Another realtime process on the same database."""
    yield from _house()
