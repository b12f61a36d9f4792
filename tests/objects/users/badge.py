"""An adapter as a deployment may write one: a badge number and the PIN that belongs to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from objects.users.adapters import Adapter, ProviderIdentity, Unproven


class Badge(Adapter):
    """``authData.badge = {"number", "pin"}``; a PIN is its number backwards."""

    def verify(self, data: Mapping[str, Any]) -> ProviderIdentity:
        number = data.get("number")
        if not isinstance(number, str) or data.get("pin") != number[::-1]:
            raise Unproven("wrong pin")
        return ProviderIdentity(number, {"number": number})
