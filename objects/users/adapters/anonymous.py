"""Anonymous users: the id that a device made up for itself is all the proof there is."""

from __future__ import annotations

from collections.abc import Mapping

from backend.kernel.json_types import Json
from objects.users.adapters.base import Adapter, ProviderIdentity, Unproven, proof_text

# SDKs send a UUID. Knowing the id is all the proof, so it can't be a short one.
_SHORTEST = 16


class Anonymous(Adapter):
    """``authData.anonymous = {"id": …}``; only where ``ALLOW_ANONYMOUS_USERS`` is on."""

    def verify(self, data: Mapping[str, Json]) -> ProviderIdentity:
        claimed = proof_text(data, "id", longest=255)
        if len(claimed) < _SHORTEST or not claimed.isprintable():
            raise Unproven("the id could be guessed")
        return ProviderIdentity(claimed, {"id": claimed})
