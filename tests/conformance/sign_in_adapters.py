"""Sign-in adapters for the providers that Parse's suites make up. For a test database only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from objects.users.adapters import Adapter, ProviderIdentity, Unproven


class Anyone(Adapter):
    """Accepts all data with an id."""

    def accepts(self, data: Mapping[str, Any]) -> bool:
        """Return whether the data proves the identity."""
        return True

    def verify(self, data: Mapping[str, Any]) -> ProviderIdentity:
        if not isinstance(data.get("id"), str) or not self.accepts(data):
            raise Unproven("The suite's provider doesn't accept this data.")
        return ProviderIdentity(id=data["id"], data=dict(data))


class Custom(Anyone):
    def accepts(self, data: Mapping[str, Any]) -> bool:
        return data.get("id") == "fastrde" and str(data.get("password")).startswith("password")


class Facebook(Anyone):
    def accepts(self, data: Mapping[str, Any]) -> bool:
        return data.get("id") == "8675309" and str(data.get("access_token")).startswith("jenny")


class MyOauth(Anyone):
    def accepts(self, data: Mapping[str, Any]) -> bool:
        return data.get("id") == "12345" and data.get("access_token") == "12345"


class Never(Anyone):
    def accepts(self, data: Mapping[str, Any]) -> bool:
        return False
