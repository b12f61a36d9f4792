"""Anonymous users: the id that a device made up for itself is all the proof there is."""

from __future__ import annotations

from collections.abc import Mapping

from backend.kernel.json_types import Json
from backend.settings.conf import service_settings
from objects.users.adapters.base import Adapter, ProviderIdentity, Unproven, proof_text


class Anonymous(Adapter):
    """``authData.anonymous = {"id": …}``; only where ``ALLOW_ANONYMOUS_USERS`` is on."""

    def verify(self, data: Mapping[str, Json]) -> ProviderIdentity:
        claimed = proof_text(data, "id", longest=255)
        # SDKs send a UUID. Knowing the id is all the proof, so it can't be a short one.
        if len(claimed) < service_settings.ANONYMOUS_ID_LENGTH or not claimed.isprintable():
            raise Unproven("the id could be guessed")
        return ProviderIdentity(claimed, {"id": claimed})
