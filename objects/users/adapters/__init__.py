"""Sign-in adapters: whether an outside identity (``authData.PROVIDER``) is proven.

``verify(provider, data)`` gives who the caller is at the provider, or raises ``UnsupportedService``
for a provider that isn't set up, ``ObjectNotFound`` for a proof that doesn't hold,
``ServiceUnavailable`` if the provider can't be asked. No user is looked at and nothing is written,
but a proof that works once (the wallet's) is used up. It may wait for a provider over the
network, so call it outside of a transaction, and once.

``challenge(provider, data)`` gives what a client has to answer, for providers that have one.

A deployment adds a provider by a subclass of ``Adapter`` and a line in ``AUTH_ADAPTERS``.
"""

from __future__ import annotations

from collections.abc import Mapping

from backend.kernel.json_types import Json
from objects.users.adapters.base import Adapter, ProviderIdentity, Unproven
from objects.users.adapters.http import Unreachable
from objects.users.adapters.setup import adapter_for, providers

__all__ = [
    "Adapter",
    "ProviderIdentity",
    "Unproven",
    "Unreachable",
    "adapter_for",
    "challenge",
    "providers",
    "verify",
]


def verify(provider: str, data: Mapping[str, Json]) -> ProviderIdentity:
    """Who the caller has proven to be at this provider."""
    return adapter_for(provider).identify(data)


def challenge(provider: str, data: Mapping[str, Json]) -> dict[str, Json]:
    """What the provider asks the client to answer."""
    return adapter_for(provider).challenge(data)
