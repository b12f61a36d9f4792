"""Fixtures of sending."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied

if TYPE_CHECKING:
    from tests.chain.sending.desk import Desk


@pytest.fixture
def desk(node: Node, db: None) -> Iterator[Desk]:
    from tests.chain.sending.desk import running_desk

    with running_desk(node) as made:
        yield made


@pytest.fixture
def proxy(desk: Desk) -> Iterator[Proxy]:
    """What the service takes for the node."""
    with proxied(desk.node) as between:
        desk.behind(between.url)
        yield between


@pytest.fixture
def by_hand(desk: Desk) -> Iterator[None]:
    """Blocks come when the test says so."""
    from tests.chain.monitored import mining_by_hand

    with mining_by_hand(desk.node):
        yield
