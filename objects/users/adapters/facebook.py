"""Facebook: the identity token of a limited login, or an access token.

An access token proves a user only to the app that it was issued for: any app's token names a user.
So the adapter requires that Facebook names this app as the token's audience.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from backend.kernel.json_types import Json
from objects.users.adapters.base import Adapter, ProviderIdentity, Unproven, proof_text
from objects.users.adapters.http import Unreachable, allowed, fetch
from objects.users.adapters.openid import OpenId


class Facebook(OpenId):
    """Options: ``appId``; ``appSecret`` for access tokens; ``graphUrl``, where Facebook answers."""

    issuer = "https://www.facebook.com"
    jwks_uri = "https://limited.facebook.com/.well-known/oauth/openid/jwks/"
    algorithms = ("RS256",)

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        Adapter.__init__(self, name, options)
        self.app_id = self.text("appId")
        super().__init__(name, {**options, "clientIds": [self.app_id]})
        self._secret = self.text("appSecret") if "appSecret" in options else None
        self._graph = self.text("graphUrl", "https://graph.facebook.com").rstrip("/")
        if not allowed(self._graph):
            raise self.misconfigured("graphUrl must be an https address.")

    def verify(self, data: Mapping[str, Json]) -> ProviderIdentity:
        # Both kinds come as access_token from some SDKs; only one of them has two dots.
        token = proof_text(data, "id_token", "token", "access_token")
        if token.count(".") == 2:
            return super().verify({**data, "id_token": token})
        return self._holder(proof_text(data, "access_token", longest=2048))

    def accepts_issuer(self, claims: Mapping[str, Any]) -> bool:
        return claims.get("iss") in (self.issuer, self.issuer.replace("://www.", "://"))

    def _holder(self, token: str) -> ProviderIdentity:
        if self._secret is None:
            raise Unproven("access tokens are not accepted without an app secret")
        query = {"input_token": token, "access_token": f"{self.app_id}|{self._secret}"}
        answer = fetch(f"{self._graph}/debug_token?{urlencode(query)}")
        if answer.status == 400:
            raise Unproven("Facebook says nothing about the token (400)")
        if answer.status != 200:
            raise Unreachable(f"answered with {answer.status}")
        about = answer.json().get("data")
        if not isinstance(about, dict) or about.get("is_valid") is not True:
            raise Unproven("the token isn't valid")
        if str(about.get("app_id")) != self.app_id or about.get("type", "USER") != "USER":
            raise Unproven("the token is of another app or of no user")
        expires = about.get("expires_at", 0)
        if not isinstance(expires, int) or 0 < expires <= time.time():
            raise Unproven("the token has expired")
        user = about.get("user_id")
        if isinstance(user, bool) or not isinstance(user, str | int):
            raise Unproven("the token is of no user")
        return ProviderIdentity(str(user), {"id": str(user)})
