"""The JavaScript SDK, installed once, and a server for it."""

from __future__ import annotations

import pytest

from tests.callers import emptied, fresh_registry, master, other
from tests.npm import NpmFailed, node_with_packages
from tests.sdk.applications import FOLDER

__all__ = ["emptied", "fresh_registry", "master", "node", "other"]


@pytest.fixture(scope="session")
def node() -> str:
    """Node's program, with the SDK installed as the lock file says."""
    try:
        return node_with_packages(FOLDER)
    except NpmFailed as error:
        pytest.fail(f"The tests of the JavaScript SDK: {error}", pytrace=False)
