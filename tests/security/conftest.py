"""Callers of the REST face, and the ways on which their requests come."""

from __future__ import annotations

import pytest

from tests.callers import *  # noqa: F403
from tests.objects.access.transports import TRANSPORTS, Send
from tests.rest import Api


@pytest.fixture(params=TRANSPORTS, ids=[item.__name__ for item in TRANSPORTS])
def send(request) -> Send:
    """One of the ways on which a request can come."""
    results: Send = request.param
    return results


@pytest.fixture
def game(master: Api) -> str:
    """An object with a secret."""
    return master.make("Game", name="chess", secret={"word": "s"}, score=1)
