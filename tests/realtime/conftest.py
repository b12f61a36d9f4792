"""Fixtures: what is committed beside a test, and chains whose events are published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.callers import *  # noqa: F403
from tests.realtime.livequery.committed import Aside

if TYPE_CHECKING:
    from tests.realtime.channel.chains import Chain


@pytest.fixture(scope="module")
def aside(emptied: None, django_db_blocker: Any) -> Iterator[Aside]:
    """Where what a test stores is committed; the module's end removes all of it."""
    thread = Aside()
    yield thread
    with django_db_blocker.unblock():
        thread.close()


@pytest.fixture
def chain(db: None, aside: Aside) -> Chain:
    """A network without published events yet."""
    from tests.realtime.channel.chains import Chain

    return Chain(aside)
