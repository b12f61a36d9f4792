"""``AUTH_ADAPTERS``: by whom users may sign in, from the environment.

``AUTH_ADAPTERS`` itself is JSON, ``{"google": {"clientIds": ["…"]}, …}``. The well-known providers
have variables of their own, which need no JSON; what ``AUTH_ADAPTERS`` says of one comes first.
"""

from __future__ import annotations

import json
from typing import Any

from backend.settings import environment
from backend.settings.environment import BadSetting


def read() -> dict[str, Any]:
    """The options of each provider. ``{}``: no sign-in by providers."""
    found: dict[str, Any] = {}
    if google := environment.words("GOOGLE_CLIENT_IDS"):
        found["google"] = {"clientIds": google}
    if apple := environment.words("APPLE_CLIENT_IDS"):
        found["apple"] = {"clientIds": apple}
    if microsoft := environment.words("MICROSOFT_CLIENT_IDS"):
        tenants = environment.words("MICROSOFT_TENANTS")
        found["microsoft"] = {"clientIds": microsoft, "tenants": tenants}
    if facebook := environment.text("FACEBOOK_APP_ID"):
        secret = environment.text("FACEBOOK_APP_SECRET")
        found["facebook"] = {"appId": facebook} | ({"appSecret": secret} if secret else {})
    if github := environment.text("GITHUB_CLIENT_ID"):
        secret = environment.required("GITHUB_CLIENT_SECRET", "GITHUB_CLIENT_ID needs it.")
        found["github"] = {"clientId": github, "clientSecret": secret}
    if environment.flag("WALLET_SIGN_IN", False):
        found["wallet"] = {
            "rpcUrls": _object("WALLET_RPC_URLS", environment.text("WALLET_RPC_URLS"))
        }
    return found | _object("AUTH_ADAPTERS", environment.text("AUTH_ADAPTERS"))


def _object(name: str, text: str) -> dict[str, Any]:
    """A JSON object. Its text is never repeated: it may hold secrets."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BadSetting(f"{name} must be a JSON object.")
    return value
