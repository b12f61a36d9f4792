"""Fixtures for webhooks: a receiving server on this machine, which the settings allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functions.webhooks.receiver import Receiver


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_ALLOW_PRIVATE": ("127.0.0.0/8",)}
    item = Receiver()
    yield item
    item.stop()
