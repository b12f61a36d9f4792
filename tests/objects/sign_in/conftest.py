"""Callers of the REST face, and the services by which users sign in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.callers import *  # noqa: F403
from tests.evm.node import Node, running_node
from tests.objects.sign_in.issuer import Issuer


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """A service that signs tokens, answering over HTTP on this machine."""
    with Issuer() as running:
        yield running


@pytest.fixture
def sign_in_by(settings) -> Callable[..., None]:
    """Set the adapters up: ``sign_in_by(google={…})``."""

    def set_up(**adapters: Mapping[str, Any]) -> None:
        settings.SERVICE = {**settings.SERVICE, "AUTH_ADAPTERS": adapters}

    return set_up


@pytest.fixture
def our_issuer(issuer, sign_in_by) -> Issuer:
    """The issuer, set up as the provider ``idp``."""
    sign_in_by(idp={"adapter": "oidc", "issuer": issuer.url, "clientIds": ["our-app", "our-web"]})
    return issuer


@pytest.fixture(scope="session")
def chain() -> Iterator[Node]:
    """A real chain, with contracts on it as a test wants them."""
    with running_node() as node:
        yield node
