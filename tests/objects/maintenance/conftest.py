"""Callers of the REST face, their emails, and a storage of its own for every test."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.callers import *  # noqa: F403
from tests.mailbox import *  # noqa: F403


@pytest.fixture(autouse=True)
def empty_storage(settings: Any, tmp_path: Path) -> None:
    """Files are below a folder that nothing else uses."""
    settings.DATA_DIR = tmp_path
    chosen = copy.deepcopy(settings.STORAGES)
    chosen["files"]["OPTIONS"]["location"] = tmp_path / "files"
    settings.STORAGES = chosen
