"""GitHub: an access token (``authData.github.access_token``) of our own OAuth app.

GitHub is called as that app, with its secret, and answers only for tokens of the app; a token that
was issued to another app proves nothing here.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from backend.kernel.json_types import Json
from objects.users.adapters.base import Adapter, ProviderIdentity, Unproven, proof_text
from objects.users.adapters.http import Unreachable, allowed, fetch


class GitHub(Adapter):
    """Options: ``clientId``, ``clientSecret``; ``apiUrl`` for GitHub Enterprise."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        self.client_id = self.text("clientId")
        pair = f"{self.client_id}:{self.text('clientSecret')}"
        self._authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        api = self.text("apiUrl", "https://api.github.com").rstrip("/")
        if not allowed(api):
            raise self.misconfigured("apiUrl must be an https address.")
        self._check = f"{api}/applications/{quote(self.client_id, safe='')}/token"

    def verify(self, data: Mapping[str, Json]) -> ProviderIdentity:
        answer = fetch(
            self._check,
            body={"access_token": proof_text(data, "access_token", longest=1024)},
            headers={"Authorization": self._authorization, "Accept": "application/vnd.github+json"},
        )
        if answer.status in (404, 422):
            raise Unproven("it is no valid token of this app")
        if answer.status != 200:
            # 401 means that our client id or secret is wrong.
            raise Unreachable(f"answered with {answer.status}")
        about = answer.json()
        app, user = about.get("app"), about.get("user")
        if not isinstance(app, dict) or app.get("client_id") != self.client_id:
            raise Unproven("the token is of another app")
        number = user.get("id") if isinstance(user, dict) else None
        if isinstance(number, bool) or not isinstance(number, int):
            raise Unproven("the token is of no user")
        return ProviderIdentity(str(number), {"id": str(number)})
