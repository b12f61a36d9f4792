"""Fixtures: callers, and registrations that are forgotten afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from functions.runtime.registry import registry
from tests.callers import *  # noqa: F403


@pytest.fixture(autouse=True)
def own_registrations() -> Iterator[None]:
    with registry.temporarily():
        yield
