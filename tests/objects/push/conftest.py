"""Fixtures for pushes: callers, and an adapter that records messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.callers import *  # noqa: F403

if TYPE_CHECKING:
    from tests.objects.push.recorder import Recorder


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    # Django isn't set up when this module is imported.
    from tests.objects.push.recorder import Recorder

    with Recorder.installed() as recorder:
        yield recorder
