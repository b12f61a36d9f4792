"""Fixtures of the tests that follow calls: callers, own registrations, a node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from functions.runtime.registry import registry
from tests.callers import *  # noqa: F403
from tests.evm.node import Node, running_node


@pytest.fixture(autouse=True)
def own_registrations() -> Iterator[None]:
    with registry.temporarily():
        yield


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with running_node() as node:
        yield node
