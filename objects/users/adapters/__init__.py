"""Sign-in adapters: they prove an outside identity (``authData.PROVIDER``).

``verify(provider, data)`` returns the caller's id at the provider. It raises ``UnsupportedService``
for a provider that isn't configured, ``ObjectNotFound`` for an invalid proof, and
``ServiceUnavailable`` if the provider can't be reached. No user is read and nothing is written, but
a proof that works once (the wallet's) is used up. It may wait for the network, so call it outside
of transactions, and once.

``challenge(provider, data)`` returns what a client has to sign or answer; None for providers that
ask nothing, or that aren't configured. A deployment adds a provider with a subclass of ``Adapter``
and a line in ``AUTH_ADAPTERS``.
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


def challenge(provider: str, data: Mapping[str, Json]) -> dict[str, Json] | None:
    """What the provider asks the client to answer, if anything."""
    return adapter_for(provider).challenge(data) if provider in providers() else None
