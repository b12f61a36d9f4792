"""Fixtures of the chain app: callers of the REST face, and a node of a chain of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.callers import *  # noqa: F403
from tests.evm.node import Node, running_node


@pytest.fixture(scope="session")
def node_of_session() -> Iterator[Node]:
    with running_node() as node:
        yield node


@pytest.fixture
def node(node_of_session: Node) -> Iterator[Node]:
    """A node whose chain is empty again afterwards, but for its height; blocks are mined on
    demand, with each transaction unless the test says otherwise."""
    yield node_of_session
    node_of_session.reset()


@pytest.fixture(autouse=True)
def without_samples(settings: Any) -> None:
    """No block is checked by chance, so that requests can be counted."""
    settings.SERVICE = {**settings.SERVICE, "VERIFY_PERCENT": 0}
